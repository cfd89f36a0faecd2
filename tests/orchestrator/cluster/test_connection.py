"""What is asked of Ray and of its machines before any trial starts."""

from __future__ import annotations

import logging
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import ray
import torch

from orchestrator.cluster.connection import LONGEST_BASE, SETTINGS, connected, scratch_folder
from orchestrator.cluster.machines import check_cuda
from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.study_work import StudyWork
from orchestrator.schedule.trials_run import run_trials
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import RunRecord, StudyKey
from orchestrator.watch.listener import Listener
from orchestrator.worker.pack_run import TrialFunctions
from tests.support.one_ray import end_ray
from tests.support.scripted_trials import SOUND, log_lines, planned, run_scripted
from trainables.errors import UserError


def options(storage: Path, gpus_per_trial: float = 0.0) -> RunOptions:
    return RunOptions(storage=FolderStorage(storage), gpus_per_trial=gpus_per_trial)


@pytest.fixture
def long_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go: a folder whose path is too long for Ray's sockets."""
    base = tmp_path / ("long" * 20)
    base.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    return base


def test_ray_gets_a_folder_with_a_short_path_wherever_temporary_files_go(long_base: Path) -> None:
    assert len(str(long_base)) > LONGEST_BASE
    with scratch_folder("sweep-ray-") as folder:
        assert folder.is_dir()
        assert len(str(folder)) <= LONGEST_BASE + len("/sweep-ray-12345678")
    assert not folder.exists()


def test_no_place_for_temporary_files_is_told_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nothing")
    with pytest.raises(UserError, match="in /proc/nothing none can be made"), scratch_folder("sweep-ray-"):
        pass


@pytest.mark.usefixtures("no_ray")
def test_a_ray_that_cannot_start_is_told_in_a_sentence(long_base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("orchestrator.cluster.connection.LONGEST_BASE", 1000)
    with (
        pytest.raises(UserError, match=r"Ray cannot be started on this machine .*AF_UNIX"),
        connected(options(long_base), print),
    ):
        pass
    assert not ray.is_initialized()


@pytest.fixture(scope="module")
def claimed_gpu() -> Iterator[None]:
    """A cluster that claims to have a GPU."""
    if torch.cuda.is_available():
        pytest.skip("needs a torch that cannot use a GPU")
    end_ray()
    os.environ.update(SETTINGS)
    with scratch_folder("test-ray-") as folder:
        ray.init(
            address="local",
            num_cpus=2,
            num_gpus=1,
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
            object_store_memory=2**27,
            _temp_dir=str(folder),
        )
        yield
        ray.shutdown()


@pytest.mark.usefixtures("claimed_gpu")
def test_a_torch_that_cannot_use_gpus_is_told_before_any_trial_starts(tmp_path: Path) -> None:
    plan = planned([SOUND])
    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        store.register(StudyKey(study="on a GPU", scale="smoke", corpus="none"), plan)
        run = RunRecord(code_version="-", packages={}, host="-", device="cuda", corpus_sha256="0" * 64)
        with pytest.raises(UserError, match=r"asks for a GPU, and .*torch .*--gpus-per-trial 0"):
            run_trials(
                plan,
                store=store,
                run_id=store.begin_run(run),
                options=options(tmp_path, gpus_per_trial=0.5),
                work=StudyWork(seconds_per_trial=0.3),
                listener=Listener(),
                functions=TrialFunctions(run_trial=run_scripted),
            )
        assert store.states([plan[0].trial_id]) == {plan[0].trial_id: "planned"}
    assert log_lines(tmp_path) == []


@pytest.mark.usefixtures("claimed_gpu")
def test_waiting_for_a_gpu_that_is_taken_ends_when_the_user_asks(tmp_path: Path) -> None:
    holder = ray.remote(num_gpus=1)(hold).remote()
    time.sleep(0.5)
    start_s = time.monotonic()
    check_cuda(options(tmp_path, gpus_per_trial=1), given_up=lambda: True)
    assert time.monotonic() - start_s < 5
    ray.cancel(holder, force=True)


def hold() -> None:
    """Keep the GPU for a minute."""
    time.sleep(60)
