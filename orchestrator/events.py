"""What a worker tells the driver about its trials, as JSON: Ray moves one string, whatever it holds."""

from __future__ import annotations

from pydantic import TypeAdapter

from trainables.config import Frozen
from trainables.outcome import EpochMetrics, TrialOutcome


class TrialEvent(Frozen):
    """A trial was taken up (neither field set), ended an epoch, or ended."""

    trial_id: str
    epoch: EpochMetrics | None = None
    outcome: TrialOutcome | None = None


EVENTS: TypeAdapter[tuple[TrialEvent, ...]] = TypeAdapter(tuple[TrialEvent, ...])
"""Several events in the order in which they happened."""
