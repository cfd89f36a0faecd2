"""The store's trials of a plan at one moment: read once, and passed on."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from orchestrator.store import PlannedTrial, TrialState


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
