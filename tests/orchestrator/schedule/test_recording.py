"""Results that a dead driver left as files reach the store; files that are no results do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.schedule.recording import Recorder
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.records import StudyKey
from orchestrator.store.store import Store
from tests.support.scripted_trials import planned
from tests.support.store_rows import RUN
from trainables.trial_folder.files import DamagedFileError
from trainables.trial_folder.folder import TrialFolder, trial_directory
from trainables.trial_folder.outcome import TrialOutcome

KEY = StudyKey(study="left", scale="smoke", corpus="none")
PLAN = planned(range(4))
IDS = [trial.trial_id for trial in PLAN]
VALUES = np.array([3.0, 2.0, 0.5])


@pytest.fixture
def recorder(store: Store, tmp_path: Path) -> Recorder:
    store.register(KEY, PLAN)
    return Recorder(store, FolderStorage(tmp_path), store.begin_run(RUN))


def done(number: int, measurement: str = "spectrum@1") -> TrialOutcome:
    return TrialOutcome(
        trial_id=IDS[number], state="done", measurements={measurement: {"metric": 3}}
    )


def leave(
    storage: Path, number: int, outcome: TrialOutcome, spectrum: np.ndarray | None = VALUES
) -> Path:
    """Write what a worker leaves in the folder of the trial with this number."""
    folder = trial_directory(storage, IDS[number])
    folder.mkdir(parents=True)
    TrialFolder(folder, outcome.trial_id).write_result(outcome, spectrum)
    return folder


def test_complete_results_are_recorded_with_their_spectrum_and_only_once(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    leave(tmp_path, 0, done(0))
    leave(tmp_path, 2, TrialOutcome(trial_id=IDS[2], state="diverged", cause="NaN."))
    notes: list[str] = []
    assert recorder.recover(PLAN, note=notes.append) == 2
    assert recorder.recover(PLAN, note=notes.append) == 0
    states = store.states(IDS)
    assert [states[trial_id] for trial_id in IDS] == ["done", "planned", "diverged", "planned"]
    np.testing.assert_array_equal(store.spectra(KEY)[IDS[0]], VALUES)
    assert notes == []


@pytest.mark.parametrize(("name", "kept"), [("layer_jacobian@2", True), ("layer_task@2", False)])
def test_the_measurements_that_leave_a_spectrum_are_known_by_name(
    name: str, kept: bool, store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    leave(tmp_path, 0, done(0, name))
    assert recorder.recover(PLAN, note=print) == 1
    assert (IDS[0] in store.spectra(KEY)) == kept


@pytest.mark.parametrize("damage", ["truncated", "foreign", "no spectrum", "cut spectrum"])
def test_a_damaged_result_is_set_aside_with_a_note_and_the_trial_runs_again(
    store: Store, recorder: Recorder, tmp_path: Path, damage: str
) -> None:
    outcome = done(0 if damage == "foreign" else 1)
    folder = leave(tmp_path, 1, outcome, None if damage == "no spectrum" else VALUES)
    cut = {"truncated": "result.json", "cut spectrum": "spectrum.npy"}.get(damage)
    if cut is not None:
        (folder / cut).write_bytes((folder / cut).read_bytes()[:-5])
    notes: list[str] = []
    assert recorder.recover(PLAN, note=notes.append) == 0
    assert store.states([IDS[1]]) == {IDS[1]: "planned"}
    assert not (folder / "result.json").exists()
    (note,) = notes
    assert "seed=1 runs again" in note


def test_two_drivers_may_set_the_same_result_aside(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    folder = leave(tmp_path, 1, done(1))
    (folder / "result.json").write_text("{")
    notes: list[str] = []

    def while_another_driver_finds_it(note: str) -> None:
        notes.append(note)
        assert recorder.recover(PLAN, note=notes.append) == 0

    assert recorder.recover(PLAN, note=while_another_driver_finds_it) == 0
    assert len(notes) == 2
    assert (folder / "result.json.unusable").read_text() == "{" and not (
        folder / "result.json"
    ).exists()
    assert store.states([IDS[1]]) == {IDS[1]: "planned"}


def test_a_reported_result_without_its_spectrum_is_refused_and_is_no_end(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    folder = leave(tmp_path, 3, done(3), spectrum=None)
    for _ in range(2):
        with pytest.raises(DamagedFileError, match=r"spectrum\.npy is missing"):
            recorder.outcome(done(3))
        assert [path.name for path in folder.iterdir()] == ["result.json.unusable"]
    assert store.states([IDS[3]]) == {IDS[3]: "planned"}


def test_it_is_said_whether_the_store_took_a_result(recorder: Recorder, tmp_path: Path) -> None:
    folder = TrialFolder(leave(tmp_path, 0, done(0)), IDS[0])
    outcome = folder.outcome()
    assert outcome is not None
    assert [recorder.outcome(outcome), recorder.outcome(outcome)] == [True, False]
    assert recorder.unreported(IDS, may_be_pruned=False) == [(outcome, False)]


def test_later_measurements_are_recorded_with_their_spectrum_once(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    recorder.outcome(TrialOutcome(trial_id=IDS[0], state="done"))
    assert recorder.measurements({IDS[0]: ["spectrum@1"]}) == (0, {})
    directory = trial_directory(tmp_path, IDS[0])
    directory.mkdir(parents=True)
    folder = TrialFolder(directory, IDS[0])
    folder.write_measurement("spectrum@1", ({"press_rank": 3}, VALUES))
    folder.write_measurement("top_k@1", ({"words": "{}"}, None))
    (directory / "measurement-other@1.json").write_text("{")
    names = ["spectrum@1", "top_k@1", "other@1"]
    recorded, problems = recorder.measurements({IDS[0]: names})
    assert recorded == 2
    assert "measurement-other@1.json" in problems[IDS[0]]
    assert recorder.measurements({IDS[0]: names}) == (0, problems)
    np.testing.assert_array_equal(store.spectra(KEY)[IDS[0]], VALUES)
