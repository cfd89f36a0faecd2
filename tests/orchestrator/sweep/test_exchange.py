from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.storage import FolderStorage
from orchestrator.store import PlannedTrial, Store, open_store
from orchestrator.sweep import check_store, import_results
from tests.support.filled_storage import OTHER, STRANGER, TRIALS, end, planned
from tests.support.store_rows import KEY, RUN, fail, outcome, tables
from trainables.trial_folder import locked


@pytest.fixture
def target(tmp_path: Path, url: str) -> FolderStorage:
    """Return an empty storage, to which the trials at `url` are imported."""
    assert url
    return FolderStorage(tmp_path / "here")


def url_of(storage: FolderStorage) -> str:
    return f"sqlite:///{storage.root}/results.db"


def imported(source: FolderStorage, target: FolderStorage) -> str:
    notes: list[str] = []
    import_results(source, target, url_of(target), notes.append)
    return "\n".join(notes)


def states(store: Store, trials: list[PlannedTrial]) -> list[str]:
    found = store.states([trial.trial_id for trial in trials])
    return [found[trial.trial_id] for trial in trials]


def test_import_equals_the_source(storage: FolderStorage, target: FolderStorage, url: str) -> None:
    for _ in range(2):
        imported(storage, target)
        assert tables(url_of(target)) == tables(url)
    assert check_store(url_of(target), target) == []


@pytest.mark.parametrize("state", ["planned", "failed", "diverged"])
def test_unfinished_trials_get_results(
    storage: FolderStorage, target: FolderStorage, url: str, state: str
) -> None:
    with open_store(url_of(target)) as store:
        store.register(KEY, TRIALS[:3])
        trial_id, run_id = TRIALS[0].trial_id, store.begin_run(RUN)
        if state == "failed":
            fail(store, trial_id, cause="no luck", run_id=run_id)
        elif state == "diverged":
            end(store, target, TRIALS[0], outcome(trial_id, state="diverged"))
        imported(storage, target)
        assert tables(url_of(target)) == tables(url)


def test_running_trials_are_left_out(storage: FolderStorage, target: FolderStorage) -> None:
    claimed, busy = TRIALS[:2]
    folder = target.trial(busy.trial_id).path
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(busy.validated.model_dump_json(indent=1))
    with open_store(url_of(target)) as store, locked(folder):
        store.register(KEY, TRIALS)
        store.claim([claimed.trial_id], owner="elsewhere:1:2:3", lease_s=600)
        text = imported(storage, target)
        assert claimed.trial_id[:12] in text and busy.trial_id[:12] in text
        assert states(store, TRIALS[:3]) == ["running", "planned", "diverged"]
        assert not target.trial(claimed.trial_id).path.exists()


def test_other_plan_stays(storage: FolderStorage, target: FolderStorage) -> None:
    here = [TRIALS[1], planned(50)]
    with open_store(url_of(target)) as store:
        store.register(KEY, here)
        assert KEY.variant in imported(storage, target)
        assert [row.trial_id for row in store.trials(KEY)] == [trial.trial_id for trial in here]
        assert len(store.trials(OTHER)) == 2
        assert states(store, [*here, TRIALS[0], STRANGER]) == ["done", "planned", "done", "done"]
