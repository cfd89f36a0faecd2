"""`ray.init` is simulated, the rest of Ray is real."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from orchestrator.cluster import connection
from tests.support.command import ROOT

PROGRAM = """
import os, shutil, subprocess, sys, time
from pathlib import Path
from types import SimpleNamespace
import ray.tune
from orchestrator.cluster import connection, ray_watch
from orchestrator.cluster.run_options import RunOptions
from orchestrator.guard import guard, guarded, was_started_again, watched
from orchestrator.storage.storage import FolderStorage
guard.STALL_S, connection.START_S = 2.0, float(sys.argv[1])
sleep = shutil.copy(shutil.which("sleep"), Path("gcs_server").absolute())
def init(**_):
    if was_started_again():
        print("ready")
    else:
        {trouble}
    return SimpleNamespace(dashboard_url="")
def run():
    connection.ray.init = init
    with watched(), connection.connected(RunOptions(storage=FolderStorage(Path())), print):
        return 0
sys.exit(guarded(run))
"""


def start(trouble: str, folder: Path, limit_s: float = connection.START_S) -> tuple[int, str, str]:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("{trouble}", trouble), str(limit_s)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return answer.returncode, answer.stdout, answer.stderr


def test_slow_ray_is_awaited(tmp_path: Path) -> None:
    assert start("time.sleep(2.5)", tmp_path) == (0, "", "")


def test_hanging_ray_start_is_repeated(tmp_path: Path) -> None:
    status, printed, stderr = start("time.sleep(50)", tmp_path, limit_s=0.5)
    assert (status, printed) == (0, "ready\n")
    assert stderr == "The sweep stalled for 0.5 s. Restarting the sweep.\n"


def test_ray_restarts_after_early_death(tmp_path: Path) -> None:
    trouble = 'subprocess.Popen(["gcs_server", "1"], executable=sleep); time.sleep(50)'
    status, printed, stderr = start(trouble, tmp_path)
    assert (status, printed) == (0, "ready\n")
    assert stderr == "Ray's process gcs_server died. Restarting the sweep.\n"
