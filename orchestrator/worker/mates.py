"""Which trials one worker can run at the same time."""

from __future__ import annotations

from collections.abc import Hashable

from orchestrator.store import PlannedTrial
from trainables.stack import stack_key


def mates_key(trial: PlannedTrial) -> Hashable | None:
    """Return what trials have in common that one worker can run at the same time; None for a trial
    that runs alone."""
    return stack_key(trial.validated)
