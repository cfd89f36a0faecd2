"""The store's trials of a plan at one moment: read once, and passed on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.plan import Plan
from orchestrator.store import OPEN, PlannedTrial, Store, TrialState


@dataclass(frozen=True, kw_only=True)
class StudyState:
    """How far a plan's trials are, and what is to be done."""

    states: Mapping[str, TrialState]
    """By trial id."""
    trials: Sequence[PlannedTrial]
    """To run now."""
    unnamed: int
    """To run later: trials that a tuning has yet to name."""
    lacking: Mapping[str, Sequence[str]]
    """By id of a done trial, the measurements of the plan that it does not have."""

    @property
    def missing(self) -> int:
        """Trials to run in all."""
        return len(self.trials) + self.unnamed

    def count(self, state: TrialState) -> int:
        """Return how many trials are in this state."""
        return sum(other == state for other in self.states.values())

    def without(self, waiting: Collection[str]) -> StudyState:
        """Return the state with fewer trials to run."""
        return replace(self, trials=[t for t in self.trials if t.trial_id not in waiting])


def read_state(
    plan: Plan,
    store: Store,
    members: Sequence[PlannedTrial],
    *,
    retried: Sequence[PlannedTrial] | None = None,
    tuning: bool = False,
) -> StudyState:
    """Return the state of the plan's members; with `retried`, only these are run, and no
    measurement is taken. `tuning` says whether further trials will be named."""
    states = store.states([trial.trial_id for trial in members])
    return StudyState(
        states=states,
        trials=[
            trial
            for trial in (members if retried is None else retried)
            if states.get(trial.trial_id) in OPEN
        ],
        unnamed=plan.total - len(members) if tuning else 0,
        lacking=store.lacking(plan.key, plan.measurements) if retried is None else {},
    )
