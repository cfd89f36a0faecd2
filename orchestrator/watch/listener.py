"""Events of a running sweep, for its observers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from functools import partial
from typing import Any

from trainables.trial_folder import Epoch, TrialOutcome


class Listener:
    """Receiver of sweep events. A method that is not overridden does nothing.

    Each event arrives once, in order, on the driver's main thread.
    """

    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        """Handle an attempt's start. A trial without epochs has no `epoch_count`."""

    def epoch(self, trial_id: str, metrics: Epoch) -> None:
        """Handle an epoch's end. A worker reports at most about twice a second."""

    def finished(self, name: str, outcome: TrialOutcome) -> None:
        """Handle a done, pruned, diverged or failed trial, after the store has recorded it.

        `outcome` has no measurements if another driver ran the trial.
        """

    def stopped(self, trial_id: str, name: str) -> None:
        """Handle a user's request to stop the trial; this sweep no longer runs it."""

    def refresh(self, pack_sizes: Sequence[int], running: Set[str]) -> None:
        """Handle the current state, several times a second.

        `pack_sizes` has the number of trials in each pack that a worker runs. `running` has the ids
        of running trials, without those of a dead worker and those that a user asked to stop.
        """

    def event(self, kind: str, content: Mapping[str, object]) -> None:
        """Handle an event of the study: `study_begun`, `report_written` or `study_ended`."""

    def note(self, text: str) -> None:
        """Handle a one-sentence message: an address, a retry, a wait."""


EVENTS = tuple(name for name in vars(Listener) if not name.startswith("_"))


class Several(Listener):
    """Forwards each event to several listeners, in their order."""

    def __init__(self, *listeners: Listener) -> None:
        for name in EVENTS:
            setattr(
                self, name, partial(_call_all, [getattr(listener, name) for listener in listeners])
            )


def _call_all(methods: list[Any], *arguments: object) -> None:
    for method in methods:
        method(*arguments)
