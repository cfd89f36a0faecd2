"""Choose the trials that the command `retry` runs."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from orchestrator.cluster import RunOptions, check_torch_gpu
from orchestrator.guard import was_started_again
from orchestrator.plan import Plan
from orchestrator.store import LOST, OPEN, PlannedTrial, Store, StudyKey
from orchestrator.sweep.corpus_files import ensure_texts


def retried_trials(
    plan: Plan, members: Sequence[PlannedTrial], store: Store, options: RunOptions, console: Console
) -> list[PlannedTrial] | None:
    """Plan failed and diverged trials again and return them, or None without such trials.

    Diverged trials start again; failed trials resume from their checkpoints. Trials without their
    text stay unchanged. If the guard restarted this process, returns the trials that are already
    planned again. Raises UserError if a GPU is missing, before any result is removed.
    """
    if was_started_again():
        return open_retries(members, store, plan.key)
    states = store.states([trial.trial_id for trial in members])
    lost_states = {trial_id: state for trial_id, state in states.items() if state in LOST}
    if not lost_states:
        return None
    if options.takes_own_gpu:
        check_torch_gpu(trial.validated for trial in plan.trials)
    for trial_id in ensure_texts(plan, console):
        lost_states.pop(trial_id, None)
    for trial_id, state in lost_states.items():
        options.storage.forget(trial_id, checkpoints=state == "diverged")
    reset_ids = set(store.reset(lost_states, states=LOST))
    return [trial for trial in members if trial.trial_id in reset_ids]


def open_retries(
    members: Sequence[PlannedTrial], store: Store, key: StudyKey
) -> list[PlannedTrial]:
    """Return the trials that a `retry` planned again and that have not ended."""
    begun_ids = {row.trial_id for row in store.trials(key) if row.attempt > 0 and row.state in OPEN}
    return [trial for trial in members if trial.trial_id in begun_ids]
