from __future__ import annotations

import pickle
from collections.abc import Callable

import numpy as np
import pytest
import torch

from orchestrator.storage import Storage
from tests.orchestrator.storage.conftest import Move
from trainables.trial_folder import (
    Checkpoints,
    DamagedFileError,
    SupersededError,
    TrialFolder,
    TrialOutcome,
    write_file,
)

TRIAL = "ab" + "0" * 62
DONE = TrialOutcome(trial_id=TRIAL, state="done")
WITH_SPECTRUM = DONE.model_copy(update={"measurements": {"spectrum@1": {"press_rank": 2}}})
OLD = TrialOutcome(trial_id=TRIAL, state="diverged", cause="an older worker")


def stopped(storage: Storage, action: Callable[[TrialFolder], object]) -> TrialFolder:
    with pytest.raises(RuntimeError), storage.working(TRIAL) as folder:
        folder.path.mkdir(parents=True, exist_ok=True)
        action(folder)
        raise RuntimeError
    return folder


def save(folder: TrialFolder, step: int) -> None:
    Checkpoints(folder).save(step, {"x": torch.ones(2)}, {"step": step})


def save_two(folder: TrialFolder) -> None:
    save(folder, 1)
    save(folder, 2)


def finish(folder: TrialFolder, outcome: TrialOutcome = DONE) -> None:
    folder.path.mkdir(parents=True, exist_ok=True)
    folder.write_result(outcome, np.ones(2) if outcome.measurements else None)


def save_and_finish(folder: TrialFolder) -> None:
    save(folder, 1)
    finish(folder)


def damage(path: TrialFolder, name: str) -> None:
    content = (path.path / name).read_bytes()
    write_file(path.path / name, content[:-2] + bytes([content[-2] ^ 1]) + content[-1:])


def test_result_is_readable_after_work(storage: Storage, move: Move) -> None:
    storage.check()
    with storage.working(TRIAL) as folder:
        finish(folder, WITH_SPECTRUM)
    move("two")
    storage.bring([TRIAL, "cd" + "1" * 62])
    result = storage.trial(TRIAL).result()
    assert result is not None and result[0].measurements == WITH_SPECTRUM.measurements
    np.testing.assert_array_equal(result[1], np.ones(2))
    assert storage.trial("cd" + "1" * 62).outcome() is None


def test_next_worker_resumes_from_checkpoint(storage: Storage, move: Move) -> None:
    stopped(storage, save_two)
    move("two")
    with storage.working(TRIAL) as folder:
        newest = Checkpoints(folder).latest("cpu")
        assert newest is not None and newest[1]["step"] == 2


def test_own_files_survive_in_folders(storage: Storage, move: Move) -> None:
    def write(folder: TrialFolder) -> None:
        (folder.path / "files" / "a" / "b").mkdir(parents=True)
        (folder.path / "files" / "a" / "b" / ".x").write_text("1")
        (folder.path / "files" / "y").write_text("2")

    stopped(storage, write)
    move("two")
    with storage.working(TRIAL) as folder:
        assert (folder.path / "files" / "a" / "b" / ".x").read_text() == "1"
        assert (folder.path / "files" / "y").read_text() == "2"
        finish(folder)
    assert not (folder.path / "worker").exists()


@pytest.mark.parametrize("name", ["result.json", "spectrum.npy"])
def test_damaged_result_is_set_aside(storage: Storage, name: str) -> None:
    def finish_and_damage(folder: TrialFolder) -> None:
        finish(folder, WITH_SPECTRUM)
        damage(folder, name)

    stopped(storage, finish_and_damage)
    storage.bring([TRIAL])
    with pytest.raises(DamagedFileError, match=f"{name} .* checksum"):
        storage.trial(TRIAL).result()
    storage.set_aside_result(TRIAL)
    storage.bring([TRIAL])
    assert storage.trial(TRIAL).result() is None
    with storage.working(TRIAL) as folder:
        assert folder.outcome() is None


def test_older_worker_replaces_no_result(storage: Storage, move: Move) -> None:
    with pytest.raises(SupersededError, match="taken over"), storage.working(TRIAL) as older:
        older.path.mkdir(parents=True, exist_ok=True)
        older.take_over()
        move("two")
        with storage.working(TRIAL) as later:
            later.path.mkdir(parents=True, exist_ok=True)
            later.take_over()
            finish(later)
        older.check_fence()
        finish(older, OLD)
    storage.bring([TRIAL])
    assert storage.trial(TRIAL).outcome() == DONE


@pytest.mark.parametrize("checkpoints", [True, False])
def test_forgotten_result_stays_forgotten(storage: Storage, move: Move, checkpoints: bool) -> None:
    stopped(storage, save_and_finish)
    storage.bring([TRIAL])
    storage.forget(TRIAL, checkpoints=checkpoints)
    assert storage.trial(TRIAL).outcome() is None
    move("two")
    with storage.working(TRIAL) as folder:
        assert folder.outcome() is None
        assert bool(folder.checkpoints()) == (not checkpoints)


def test_marker_identifies_the_storage(storage: Storage, move: Move) -> None:
    storage.check()
    with storage.marked() as marker:
        move("two")
        assert storage.problem(marker) is None
    assert storage.problem(marker) is not None


def test_storage_travels_as_its_address(storage: Storage) -> None:
    assert pickle.loads(pickle.dumps(storage)) == storage
    with storage.working(TRIAL) as folder:
        message = storage.in_words_of_user(f"{folder.path}/result.json is damaged", folder)
    assert message == f"{storage}/trials/ab/{TRIAL}/result.json is damaged"
