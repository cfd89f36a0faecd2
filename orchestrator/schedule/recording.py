"""From the files that workers leave to the store; the only road by which results get there.

A worker makes its result durable before it reports it, so whatever a driver did not live to record is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from orchestrator.storage.bucket import patiently
from orchestrator.storage.storage import Storage
from orchestrator.store.records import OPEN, PlannedTrial
from orchestrator.store.store import Store
from trainables.trial_folder.folder import UnusableResultError
from trainables.trial_folder.outcome import TrialOutcome


def recover(
    store: Store,
    storage: Storage,
    trials: Sequence[PlannedTrial],
    run_id: int,
    *,
    note: Callable[[str], None],
    may_be_pruned: Callable[[PlannedTrial], bool] = lambda trial: False,  # noqa: ARG005
) -> int:
    """Record results that were left as files by a driver that died; returns how many.

    Looks at trials that are planned or running. One that was stopped early counts only where `may_be_pruned` says so;
    any other runs on. Files that are truncated or belong to another trial are set aside with
    a note: such a trial simply runs again.
    """
    states = store.states([trial.trial_id for trial in trials])
    missing = [trial for trial in trials if states.get(trial.trial_id) in OPEN]
    storage.bring_results([trial.trial_id for trial in missing])
    found = 0
    for trial in missing:
        try:
            result = storage.trial(trial.trial_id).result()
        except UnusableResultError as error:
            note(f"{trial.name} runs again: {error}.")
            storage.set_aside_result(trial.trial_id)
            continue
        if result is not None and (result[0].state != "pruned" or may_be_pruned(trial)):
            found += store.record(result[0], run_id=run_id, spectrum=result[1])
    return found


def record_outcome(store: Store, storage: Storage, outcome: TrialOutcome, *, run_id: int) -> TrialOutcome:
    """Record a reported outcome and its spectrum; returns what was recorded.

    An outcome whose spectrum cannot be read is recorded as failed: a done trial never changes, so it could never get
    its spectrum later.
    """
    if outcome.state == "done":
        patiently(lambda: storage.bring_results([outcome.trial_id]))
    try:
        spectrum = storage.trial(outcome.trial_id).spectrum(outcome) if outcome.state == "done" else None
    except UnusableResultError as error:
        storage.set_aside_result(outcome.trial_id)
        outcome = TrialOutcome(trial_id=outcome.trial_id, state="failed", cause=str(error))
        spectrum = None
    store.record(outcome, run_id=run_id, spectrum=spectrum)
    return outcome


def record_later(store: Store, storage: Storage, trial_id: str, names: Iterable[str], *, run_id: int) -> int:
    """Record those of a done trial's later measurements that lie in its folder; returns how many were new.

    Raises ValueError where one cannot be recorded, as `Store.add_measurement` does.
    """
    folder = storage.trial(trial_id)
    new = 0
    for name in names:
        later = folder.measurement(name)
        if later is not None:
            new += store.add_measurement(trial_id, name, later[0], run_id=run_id, spectrum=later[1])
    return new
