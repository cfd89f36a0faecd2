"""Trials that failed or diverged, to be run again: the command `retry`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.plan import Plan
from orchestrator.storage import Storage
from orchestrator.store import LOST, PlannedTrial, Store
from orchestrator.words import on_corpus


def study_members(plan: Plan, store: Store) -> Sequence[PlannedTrial]:
    """The study's trials without planning anything: of a tuned one, those that it has come to."""
    if plan.tuning is None:
        return [trial.planned() for trial in plan.trials]
    return [row.planned() for row in store.trials(plan.key)]


def reset_lost(
    members: Sequence[PlannedTrial], store: Store, storage: Storage, waiting: Callable[[], frozenset[str]]
) -> list[PlannedTrial] | None:
    """Plan failed and diverged trials again; a diverged one starts anew, a failed one from its checkpoint.

    Before anything is forgotten, `waiting` says which of them cannot run now; they stay as they are. None where no
    trial has failed or diverged.
    """
    states = store.states([trial.trial_id for trial in members])
    lost = [trial.trial_id for trial in members if states.get(trial.trial_id) in LOST]
    if not lost:
        return None
    without_text = waiting()
    lost = [trial_id for trial_id in lost if trial_id not in without_text]
    for trial_id in lost:
        storage.forget(trial_id, checkpoints=states[trial_id] == "diverged")
    reset = set(store.reset(lost, states=LOST))
    return [trial for trial in members if trial.trial_id in reset]


def nothing_to_retry(plan: Plan, store: Store) -> str:
    """That there is no such trial here, and where there are some."""
    variants = [
        f"scale {summary.key.scale}{on_corpus(summary.key.corpus)}"
        + ("" if summary.key.overrides == "{}" else ", --set")
        for summary in store.studies()
        if summary.key.study == plan.study.name and summary.counts["failed"] + summary.counts["diverged"]
    ]
    hint = f" Trials of it failed or diverged at {' and at '.join(variants)}: name that one." if variants else ""
    return (
        f"No trial of {plan.study.name} at scale {plan.scale.name}{on_corpus(plan.corpus.name)} has failed or "
        f"diverged, so there is nothing to retry; python sweep.py status shows what the store has.{hint}"
    )
