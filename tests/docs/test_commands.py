from __future__ import annotations

import subprocess
import sys

from tests.support.command import ROOT


def test_command_reference_is_up_to_date() -> None:
    script = [sys.executable, str(ROOT / "docs" / "build_commands.py"), "--check"]
    checked = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
