"""A driver in a process of its own, to be stopped and killed by tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.support.scripted_trials import log_lines

TRIALS = 10


class Driver:
    """A driver process in a process group of its own, as a shell starts it.

    Its folder for temporary files has a long path, as clusters give them: Ray's sockets would not fit below it.
    """

    def __init__(self, folder: Path, *program: str, trials: int = TRIALS) -> None:
        command = [sys.executable, *(program or ("-m", "tests.support.driver_program")), str(folder), str(trials)]
        temporary = folder / "scratch-of-a-cluster-job-with-a-long-name"
        temporary.mkdir(exist_ok=True)
        self.process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "TMPDIR": str(temporary)},
        )

    def end(self, timeout_s: float) -> tuple[dict[str, Any], str]:
        """Its summary and what it wrote to standard error."""
        output, errors = self.process.communicate(timeout=timeout_s)
        assert self.process.returncode == 0, errors
        return json.loads(output), errors


def wait_for_starts(folder: Path, driver: Driver, more: int) -> None:
    """Return once `more` trials started since now."""
    starts = count(folder, "start") + more
    deadline_s = time.monotonic() + 60
    while count(folder, "start") < starts:
        assert driver.process.poll() is None, driver.process.communicate()
        assert time.monotonic() < deadline_s, "no trial started within a minute"
        time.sleep(0.05)


def count(folder: Path, word: str) -> int:
    return sum(line.startswith(word) for line in log_lines(folder))
