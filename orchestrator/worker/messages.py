"""What a worker tells the driver about its trials, as JSON: Ray moves one string, whatever it holds."""

from __future__ import annotations

from pydantic import TypeAdapter

from trainables.config.frozen import Frozen
from trainables.trial_folder.outcome import EpochMetrics, TrialOutcome


class TrialEvent(Frozen):
    """A trial was taken up (no field set), ended an epoch, ended, or could go no further for its disk."""

    trial_id: str
    epoch: EpochMetrics | None = None
    outcome: TrialOutcome | None = None
    disk: str | None = None
    """One of `DISK_TROUBLES`: not the trial's fault, and any other one would meet it too."""
    bucket: str | None = None
    """In the same way, what is amiss with the object store, and the cure."""


EVENTS: TypeAdapter[tuple[TrialEvent, ...]] = TypeAdapter(tuple[TrialEvent, ...])
"""Several events in the order in which they happened."""
