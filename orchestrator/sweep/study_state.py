"""Progress of a plan's trials, read from the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from orchestrator.store import PlannedTrial, TrialState


@dataclass(frozen=True, kw_only=True)
class StudyState:
    """Progress of a plan's trials at one moment."""

    states: Mapping[str, TrialState]
    trials: Sequence[PlannedTrial]
    unnamed_count: int
    """Number of trials that a tuning has not chosen yet."""
    unmeasured: Mapping[str, Sequence[str]]
    """Missing measurements of done trials, by trial id."""
    weightless_count: int = 0
    """Number of other done trials without a measurement, which have no weights to measure."""

    @property
    def missing_count(self) -> int:
        """Number of trials still to run."""
        return len(self.trials) + self.unnamed_count

    def count(self, state: TrialState) -> int:
        """Return the number of trials in `state`."""
        return sum(other == state for other in self.states.values())
