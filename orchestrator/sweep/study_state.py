"""A plan's trials in the store at one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.store import PlannedTrial, TrialState


@dataclass(frozen=True, kw_only=True)
class StudyState:
    """Progress of a plan's trials."""

    states: Mapping[str, TrialState]
    trials: Sequence[PlannedTrial]
    """Trials to run now."""
    unnamed_count: int
    """Trials that a tuning has yet to choose."""
    unmeasured: Mapping[str, Sequence[str]]
    """Missing measurements of done trials, by trial id."""

    @property
    def missing_count(self) -> int:
        """Number of trials still to run."""
        return len(self.trials) + self.unnamed_count

    def count(self, state: TrialState) -> int:
        """Return the number of trials in `state`."""
        return sum(other == state for other in self.states.values())
