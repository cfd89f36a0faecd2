"""Results that a dead driver left as files reach the store; files that are no results do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.schedule import Recorder
from orchestrator.storage import FolderStorage
from orchestrator.store import Store, StudyKey
from tests.support.scripted_trials import planned
from tests.support.store_rows import RUN
from trainables.trial_folder import DamagedFileError, TrialFolder, TrialOutcome, trial_directory

KEY = StudyKey(study="left", scale="smoke", corpus="none")
PLAN = planned(range(4))
IDS = [trial.trial_id for trial in PLAN]
VALUES = np.array([3.0, 2.0, 0.5])


@pytest.fixture
def recorder(store: Store, tmp_path: Path) -> Recorder:
    store.register(KEY, PLAN)
    return Recorder(store, FolderStorage(tmp_path), store.begin_run(RUN))


def done(number: int, measurement: str = "spectrum@1") -> TrialOutcome:
    measurements = {measurement: {"metric": 3}}
    return TrialOutcome(trial_id=IDS[number], state="done", measurements=measurements)


def folder_of(storage: Path, number: int) -> TrialFolder:
    path = trial_directory(storage, IDS[number])
    path.mkdir(parents=True, exist_ok=True)
    return TrialFolder(path, IDS[number])


def leave(
    storage: Path, number: int, outcome: TrialOutcome, spectrum: np.ndarray | None = VALUES
) -> Path:
    """Write what a worker leaves in the folder of the trial with this number."""
    path = folder_of(storage, number).path
    TrialFolder(path, outcome.trial_id).write_result(outcome, spectrum)
    return path


def test_results_are_recorded_once(store: Store, recorder: Recorder, tmp_path: Path) -> None:
    leave(tmp_path, 0, done(0))
    leave(tmp_path, 2, TrialOutcome(trial_id=IDS[2], state="diverged", cause="NaN."))
    notes: list[str] = []
    assert recorder.recover(PLAN, note=notes.append) == 2
    assert recorder.recover(PLAN, note=notes.append) == 0
    states = store.states(IDS)
    assert [states[trial_id] for trial_id in IDS] == ["done", "planned", "diverged", "planned"]
    np.testing.assert_array_equal(store.spectra(KEY)[IDS[0]], VALUES)
    assert notes == []


@pytest.mark.parametrize("damage", ["truncated", "foreign", "no spectrum", "cut spectrum"])
def test_damaged_result_is_set_aside(
    store: Store, recorder: Recorder, tmp_path: Path, damage: str
) -> None:
    outcome = done(0 if damage == "foreign" else 1)
    folder = leave(tmp_path, 1, outcome, None if damage == "no spectrum" else VALUES)
    cut = {"truncated": "result.json", "cut spectrum": "spectrum.npy"}.get(damage)
    if cut is not None:
        (folder / cut).write_bytes((folder / cut).read_bytes()[:-5])
    notes: list[str] = []

    def while_another_driver_finds_it(note: str) -> None:
        notes.append(note)
        assert recorder.recover(PLAN, note=notes.append) == 0

    assert recorder.recover(PLAN, note=while_another_driver_finds_it) == 0
    assert store.states([IDS[1]]) == {IDS[1]: "planned"}
    assert (folder / "result.json.unusable").exists() and not (folder / "result.json").exists()
    assert len(notes) == 2 and "seed=1 runs again" in notes[0]


def test_reported_result_without_its_spectrum_is_refused(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    folder = leave(tmp_path, 3, done(3), spectrum=None)
    for _ in range(2):
        with pytest.raises(DamagedFileError, match=r"spectrum\.npy is missing"):
            recorder.outcome(done(3))
        assert [path.name for path in folder.iterdir()] == ["result.json.unusable"]
    assert store.states([IDS[3]]) == {IDS[3]: "planned"}


def test_recorder_returns_whether_the_store_took_a_result(
    recorder: Recorder, tmp_path: Path
) -> None:
    leave(tmp_path, 0, done(0))
    outcome = folder_of(tmp_path, 0).outcome()
    assert outcome is not None
    assert [recorder.outcome(outcome), recorder.outcome(outcome)] == [True, False]
    assert recorder.unreported(IDS, may_be_pruned=False) == [(outcome, False)]


def test_later_measurements_are_recorded_once(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    recorder.outcome(TrialOutcome(trial_id=IDS[0], state="done"))
    assert recorder.measurements({IDS[0]: ["spectrum@1"]}) == (0, {})
    folder = folder_of(tmp_path, 0)
    folder.write_measurement("spectrum@1", ({"press_rank": 3}, VALUES))
    folder.write_measurement("top_k@1", ({"words": "{}"}, None))
    (folder.path / "measurement-other@1.json").write_text("{")
    names = ["spectrum@1", "top_k@1", "other@1"]
    recorded, problems = recorder.measurements({IDS[0]: names})
    assert recorded == 2
    assert "measurement-other@1.json" in problems[IDS[0]]
    assert recorder.measurements({IDS[0]: names}) == (0, problems)
    np.testing.assert_array_equal(store.spectra(KEY)[IDS[0]], VALUES)
