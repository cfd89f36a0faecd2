from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import ROOT, results_table, sweep
from tests.support.slurm import SlurmCluster

SMOKE = ("gss_grid", "--scale", "smoke")
pytestmark = [pytest.mark.timeout(600), pytest.mark.chaos(0, 1)]


def submitted(cluster: SlurmCluster, folder: Path, python: str) -> tuple[int, str]:
    """Submit the example and return its exit status and its log."""
    log = folder / "job.log"
    options = ["--nodes=2", "--cpus-per-task=1", "--time=20", f"--output={log}"]
    answer = subprocess.run(
        ["sbatch", "--parsable", *options, "examples/slurm/ray.sbatch", *SMOKE],
        cwd=ROOT,
        env=os.environ | {"PYTHON": python, "STORAGE": str(folder / "results")},
        capture_output=True,
        text=True,
        check=True,
    )
    cluster.wait_for_jobs(300)
    (status,) = cluster.exit_statuses(answer.stdout.strip())
    return status, log.read_text()


def test_ray_job_runs_a_sweep(cluster: SlurmCluster, tmp_path: Path) -> None:
    status, log = submitted(cluster, tmp_path, sys.executable)
    assert status == 0, log
    assert sweep(*SMOKE, "--storage", tmp_path / "undisturbed").returncode == 0
    assert results_table(tmp_path / "results") == results_table(tmp_path / "undisturbed")
    assert not list((tmp_path / "results").glob(".ray-token*"))


def test_dead_head_ends_the_job(cluster: SlurmCluster, tmp_path: Path) -> None:
    status, log = submitted(cluster, tmp_path, "/bin/false")
    assert status == 1, log
    assert not list((tmp_path / "results").glob(".ray-token*"))
