"""Results that a dead driver left as files reach the store; files that are no results do not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from orchestrator.cluster.run_options import RunOptions
from orchestrator.schedule.recording import Recorder
from orchestrator.storage.storage import FolderStorage
from orchestrator.store.opening import open_store
from orchestrator.store.records import RunRecord, StudyKey
from orchestrator.store.store import Store
from tests.support.scripted_trials import planned
from trainables.trial_folder.folder import TrialFolder, trial_directory
from trainables.trial_folder.outcome import TrialOutcome

KEY = StudyKey(study="found", scale="smoke", corpus="none")
PLAN = planned(range(4))
VALUES = np.array([3.0, 2.0, 0.5])


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path}/results.db") as opened:
        opened.register(KEY, PLAN)
        yield opened


@pytest.fixture
def recorder(store: Store, tmp_path: Path) -> Recorder:
    run = RunRecord(code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64)
    return Recorder(store, RunOptions(storage=FolderStorage(tmp_path)), store.begin_run(run))


def done(trial_id: str) -> TrialOutcome:
    return TrialOutcome(trial_id=trial_id, state="done", measurements={"spectrum@1": {"press_rank": 3}})


def leave(storage: Path, number: int, text: str, spectrum: np.ndarray | None = VALUES) -> Path:
    """Write what a worker leaves in the folder of the trial with this number."""
    folder = trial_directory(storage, PLAN[number].trial_id)
    folder.mkdir(parents=True)
    if spectrum is not None:
        np.save(folder / "spectrum.npy", spectrum)
    (folder / "result.json").write_text(text)
    return folder


def test_complete_results_are_recorded_with_their_spectrum_and_only_once(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    leave(tmp_path, 0, done(PLAN[0].trial_id).model_dump_json())
    leave(tmp_path, 2, TrialOutcome(trial_id=PLAN[2].trial_id, state="diverged", cause="NaN.").model_dump_json())
    notes: list[str] = []
    assert recorder.recover(PLAN, note=notes.append) == 2
    assert recorder.recover(PLAN, note=notes.append) == 0
    states = store.states([trial.trial_id for trial in PLAN])
    assert [states[trial.trial_id] for trial in PLAN] == ["done", "planned", "diverged", "planned"]
    np.testing.assert_array_equal(store.spectra(KEY)[PLAN[0].trial_id], VALUES)
    assert notes == []


@pytest.mark.parametrize(("name", "kept"), [("spectrum@1", True), ("layer_jacobian@2", True), ("layer_task@2", False)])
def test_the_measurements_that_leave_a_spectrum_are_known_by_name(
    name: str, kept: bool, store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    outcome = TrialOutcome(trial_id=PLAN[0].trial_id, state="done", measurements={name: {"metric": 1}})
    leave(tmp_path, 0, outcome.model_dump_json())
    assert recorder.recover(PLAN, note=print) == 1
    assert (outcome.trial_id in store.spectra(KEY)) == kept


@pytest.mark.parametrize("damage", ["truncated", "foreign", "no spectrum", "pickled spectrum", "cut spectrum"])
def test_a_damaged_result_is_set_aside_with_a_note_and_the_trial_runs_again(
    store: Store, recorder: Recorder, tmp_path: Path, damage: str
) -> None:
    text = done(PLAN[1].trial_id).model_dump_json()
    if damage == "truncated":
        folder = leave(tmp_path, 1, text[: len(text) // 2])
    elif damage == "foreign":
        folder = leave(tmp_path, 1, done(PLAN[0].trial_id).model_dump_json())
    elif damage == "no spectrum":
        folder = leave(tmp_path, 1, text, spectrum=None)
    elif damage == "pickled spectrum":
        folder = leave(tmp_path, 1, text, spectrum=np.array([{"a": 1}], dtype=object))
    else:
        folder = leave(tmp_path, 1, text)
        (folder / "spectrum.npy").write_bytes((folder / "spectrum.npy").read_bytes()[:-5])
    notes: list[str] = []
    assert recorder.recover(PLAN, note=notes.append) == 0
    assert store.states([PLAN[1].trial_id]) == {PLAN[1].trial_id: "planned"}
    assert not (folder / "result.json").exists()
    assert len(notes) == 1
    assert "seed=1 runs again" in notes[0]


def test_a_reported_result_without_its_spectrum_is_a_failure_that_names_the_file(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    leave(tmp_path, 3, done(PLAN[3].trial_id).model_dump_json(), spectrum=None)
    recorded = recorder.outcome(done(PLAN[3].trial_id))
    assert recorded.state == "failed"
    assert "spectrum.npy is missing" in str(recorded.cause)
    assert store.states([PLAN[3].trial_id]) == {PLAN[3].trial_id: "failed"}


def test_later_measurements_are_recorded_with_their_spectrum_once(
    store: Store, recorder: Recorder, tmp_path: Path
) -> None:
    bare = recorder.outcome(TrialOutcome(trial_id=PLAN[0].trial_id, state="done"))
    folder = trial_directory(tmp_path, bare.trial_id)
    assert recorder.measurements({bare.trial_id: ["spectrum@1"]}) == (0, {})
    folder.mkdir(parents=True)
    TrialFolder(folder, bare.trial_id).write_measurement("spectrum@1", ({"press_rank": 3}, VALUES))
    TrialFolder(folder, bare.trial_id).write_measurement("top_k@1", ({"top_k even 1": "{}"}, None))
    (folder / "measurement-other@1.json").write_text("{")
    names = ["spectrum@1", "top_k@1", "other@1"]
    assert recorder.measurements({bare.trial_id: names}) == (2, {})
    assert recorder.measurements({bare.trial_id: names}) == (0, {})
    np.testing.assert_array_equal(store.spectra(KEY)[bare.trial_id], VALUES)
