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
from trainables.trial_folder import TrialFolder, TrialOutcome, trial_directory

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
    found = recorder.recover(PLAN, note=notes.append)
    assert [(outcome.trial_id, taken) for outcome, taken in found] == [
        (IDS[0], True),
        (IDS[2], True),
    ]
    assert recorder.recover(PLAN, note=notes.append) == []
    states = store.states(IDS)
    assert [states[trial_id] for trial_id in IDS] == ["done", "planned", "diverged", "planned"]
    np.testing.assert_array_equal(store.spectra(KEY)[IDS[0]], VALUES)
    assert notes == []


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
