"""From the files that workers leave to the store; the only road by which results get there.

A worker makes its result durable before it reports it, so whatever a driver did not live to record is found again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from orchestrator.storage.bucket import patiently
from orchestrator.storage.mirror import Mirror
from orchestrator.store.records import OPEN, PlannedTrial
from orchestrator.store.store import Store
from trainables.trial_folder.folder import TrialFolder, UnusableResultError
from trainables.trial_folder.outcome import TrialOutcome


def recover(
    store: Store,
    storage: Path,
    trials: Sequence[PlannedTrial],
    run_id: int,
    *,
    note: Callable[[str], None],
    may_be_pruned: Callable[[PlannedTrial], bool] = lambda trial: False,  # noqa: ARG005
    mirror: Mirror | None = None,
) -> int:
    """Record results that were left as files by a driver that died; returns how many.

    Looks at trials that are planned or running. One that was stopped early counts only where `may_be_pruned` says so;
    any other runs on. Files that are truncated or belong to another trial are set aside with
    a note: such a trial simply runs again. With a `mirror`, `storage` is its folder.
    """
    states = store.states([trial.trial_id for trial in trials])
    missing = [trial for trial in trials if states.get(trial.trial_id) in OPEN]
    if mirror is not None:
        mirror.fetch([trial.trial_id for trial in missing])
    found = 0
    for trial in missing:
        try:
            result = TrialFolder.below(storage, trial.trial_id).result()
        except UnusableResultError as error:
            note(f"{trial.name} runs again: {error}.")
            _set_aside(storage, trial.trial_id, mirror)
            continue
        if result is not None and (result[0].state != "pruned" or may_be_pruned(trial)):
            found += store.record(result[0], run_id=run_id, spectrum=result[1])
    return found


def record_outcome(
    store: Store, storage: Path, outcome: TrialOutcome, *, run_id: int, mirror: Mirror | None = None
) -> TrialOutcome:
    """Record a reported outcome and its spectrum; returns what was recorded.

    An outcome whose spectrum cannot be read is recorded as failed: a done trial never changes, so it could never get
    its spectrum later.
    """
    if mirror is not None and outcome.state == "done":
        patiently(lambda: mirror.fetch([outcome.trial_id]))
    try:
        spectrum = TrialFolder.below(storage, outcome.trial_id).spectrum(outcome) if outcome.state == "done" else None
    except UnusableResultError as error:
        _set_aside(storage, outcome.trial_id, mirror)
        outcome = TrialOutcome(trial_id=outcome.trial_id, state="failed", cause=str(error))
        spectrum = None
    store.record(outcome, run_id=run_id, spectrum=spectrum)
    return outcome


def record_later(store: Store, storage: Path, trial_id: str, names: Iterable[str], *, run_id: int) -> int:
    """Record those of a done trial's later measurements that lie in its folder; returns how many were new.

    Raises ValueError where one cannot be recorded, as `Store.add_measurement` does.
    """
    folder = TrialFolder.below(storage, trial_id)
    new = 0
    for name in names:
        later = folder.measurement(name)
        if later is not None:
            new += store.add_measurement(trial_id, name, later[0], run_id=run_id, spectrum=later[1])
    return new


def _set_aside(storage: Path, trial_id: str, mirror: Mirror | None) -> None:
    """Rename a result that is of no use, or the worker would take the trial for finished."""
    TrialFolder.below(storage, trial_id).set_aside_result()
    if mirror is not None:
        mirror.set_aside(trial_id)
