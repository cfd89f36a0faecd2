from __future__ import annotations

import re
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from tests.slurm.array_sweep import ArraySweep
from tests.support.command import sweep, wait_for
from tests.support.slurm import SlurmCluster, slurm_cluster
from tests.support.small_disk import change, small_disk

pytestmark = pytest.mark.timeout(0)
STUDY = """from search_spaces.study import Study
from trainables.config import Command

STUDY = Study(
    name="echo",
    trials=lambda: [Command(["sh", "-c", "echo '{{{{\\"loss\\": 1}}}}'"])],
    metric="loss",
)
"""


class FewTrials(ArraySweep):
    TRIALS = 4
    TEXT = ArraySweep.TEXT.replace("seeds=2", "seeds=1").replace("0.2\n", "0.1\n", 1)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    path = tmp_path / "echo.py"
    path.write_text(STUDY)
    return path


def refusal(*arguments: str | Path) -> str:
    answer = sweep("slurm", *arguments)
    assert answer.returncode == 2, answer
    assert re.fullmatch(r"error: [^\n]+\n", answer.stderr), answer.stderr
    return answer.stderr


def test_missing_sbatch_is_named(
    study: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "no sbatch" in refusal(study, "--storage", tmp_path / "results")
    script = tmp_path / "array.sh"
    written = sweep("slurm", study, "--storage", tmp_path / "results", "--script", script)
    assert written.returncode == 0, written.stderr
    assert '#SBATCH "--array=1-1"' in script.read_text(), "one job for its only trial"
    text = refusal(study, "--storage", tmp_path / "results", "--script", tmp_path / "no" / "x.sh")
    assert "--script" in text


def test_search_has_no_workers(tmp_path: Path) -> None:
    text = refusal("fair_capacity", "--scale", "smoke", "--storage", tmp_path / "results")
    assert "search" in text


def test_object_store_has_no_workers(study: Path) -> None:
    assert "folder" in refusal(study, "--storage", "s3://bucket/sweeps")


def test_refused_job_is_reported(cluster: SlurmCluster, study: Path, tmp_path: Path) -> None:
    text = refusal(study, "--storage", tmp_path / "results", "--partition", "none")
    assert "invalid partition" in text
    assert not cluster.jobs()


def test_hidden_storage_is_refused(cluster: SlurmCluster, study: Path, tmp_path: Path) -> None:
    storage = tmp_path / "results"
    storage.mkdir()
    with cluster.hidden(storage):
        assert "nodes do not see" in refusal(study, "--storage", storage)
    assert not cluster.jobs()


def test_node_that_loses_storage_says_so(
    cluster: SlurmCluster, study: Path, tmp_path: Path
) -> None:
    """Slurm writes the log of this job elsewhere, because its own folder is hidden."""
    storage, script, log = tmp_path / "results", tmp_path / "array.sh", tmp_path / "log"
    assert sweep("slurm", study, "--storage", storage, "--script", script).returncode == 0
    with cluster.hidden(storage):
        command = ["sbatch", "--parsable", "--array=1", f"--output={log}", str(script)]
        job = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
        cluster.wait_for_jobs(60)
    assert cluster.exit_statuses(job) == [2]
    assert re.fullmatch(r"error: (one|two) does not see [^\n]+--storage[^\n]+\n", log.read_text())
    assert not list(storage.glob("trials/*/*"))


@pytest.mark.chaos(0, 1)
def test_full_disk_stops_the_array(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", kib=4096) as disk,
        # The nodes see the mounts that exist when they start.
        slurm_cluster(_folder(tmp_path / "slurm")) as cluster,
        FewTrials(tmp_path / "sweep", cluster, storage=disk) as array,
    ):
        job = array.submit("--array", "2")
        wait_for(array.diaries, timeout_s=120, event="the first trial")
        _fill(disk / "filler")
        cluster.wait_for_jobs(120)
        assert cluster.exit_statuses(job) == [2, 2], array.logs()
        assert len(re.findall(r"error: The disk of [^\n]+ is full", array.logs())) == 2
        done = array.results()
        change(disk, "size=16m")
        array.submit("--array", "2", CHAOS_LEASE_S="10")
        cluster.wait_for_jobs(120)
        assert array.results() == array.TRIALS
        assert sum(map(len, array.attempts())) <= array.TRIALS + 2
        assert done < array.TRIALS
        shutil.copytree(disk, tmp_path / "copy")
    answer = sweep("results", "chaos", "--storage", tmp_path / "copy", "--format", "csv")
    assert answer.stdout.count("\n") == 1 + 4, answer


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def _fill(path: Path) -> None:
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))
