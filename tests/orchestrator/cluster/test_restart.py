"""What a process leaves that cannot go on."""

from __future__ import annotations

import subprocess
import sys

from orchestrator.cluster.restart import START_AGAIN


def test_it_ends_at_once_with_its_reason_and_the_status_that_asks_for_another_start() -> None:
    code = "import atexit; atexit.register(print, 'late'); import orchestrator.cluster as c; c.start_again('Why.')"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (START_AGAIN, "", "Why.\n")
