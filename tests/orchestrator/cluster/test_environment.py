from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, UV

PARENT_OF_A_WORKER = """
import orchestrator.schedule.tune
import psutil, ray

ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
print("parent:", ray.get(ray.remote(lambda: psutil.Process().parent().name()).remote()))
"""


@pytest.mark.skipif(not UV.exists(), reason="uv is not installed")
def test_ray_starts_workers_without_uv(tmp_path: Path) -> None:
    """Ray's own hook would start each worker by `uv run`."""
    script = tmp_path / "parent.py"
    script.write_text(PARENT_OF_A_WORKER)
    words = ("run", "--no-project", "--offline", "--python", sys.executable, script)
    answer = subprocess.run([UV, *words], cwd=ROOT, capture_output=True, text=True)
    assert "parent: raylet" in answer.stdout, answer.stdout + answer.stderr
