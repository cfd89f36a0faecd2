from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from orchestrator.schedule import Recorder
from orchestrator.storage import FolderStorage
from orchestrator.store import Store
from tests.orchestrator.schedule.numbered_trials import IDS, KEY, PLAN, folder_of, states
from tests.support.store_rows import RUN
from trainables.trial_folder import TrialOutcome

VALUES = np.array([3.0, 2.0, 0.5])


@pytest.fixture
def recorder(store: Store, tmp_path: Path) -> Recorder:
    store.register(KEY, PLAN)
    return Recorder(store, FolderStorage(tmp_path), store.begin_run(RUN))


def test_results_are_recorded_once(store: Store, recorder: Recorder, tmp_path: Path) -> None:
    measured = {"spectrum@1": {"metric": 3}}
    done = TrialOutcome(trial_id=IDS[0], state="done", measurements=measured)
    folder_of(tmp_path, 0).write_result(done, VALUES)
    diverged = TrialOutcome(trial_id=IDS[2], state="diverged", cause="NaN.")
    folder_of(tmp_path, 2).write_result(diverged, None)
    (folder_of(tmp_path, 3).path / "result.json").write_text("{")
    notes: list[str] = []
    recovered = recorder.recover(PLAN, note=notes.append)
    assert [(outcome.trial_id, taken) for outcome, taken in recovered] == [
        (IDS[0], True),
        (IDS[2], True),
    ]
    assert recorder.recover(PLAN, note=notes.append) == []
    assert states(store) == ["done", "planned", "diverged", *["planned"] * 3]
    np.testing.assert_array_equal(store.spectra(KEY)[IDS[0]], VALUES)
    (note,) = notes
    assert "seed=3 runs again" in note
