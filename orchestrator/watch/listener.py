"""What a sweep tells whoever watches it while it runs."""

from __future__ import annotations

from collections.abc import Sequence, Set
from functools import partial
from typing import Any

from trainables.trial_folder import EpochMetrics, TrialOutcome


class Listener:
    """Hears of every event once, on the driver's main thread, in the order in which events arrive
    there.

    Does nothing about those whose method it does not override.
    """

    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        """A worker took the trial up; again for every attempt. `epoch_count`: epochs that it
        trains, if it trains."""

    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        """An epoch ended. Workers report about two a second at most, so not every epoch is
        heard."""

    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        """The trial is done, pruned, diverged or failed, and the store knows. Measurements are
        absent where another driver ran it."""

    def stopped(self, trial_id: str, name: str) -> None:
        """This sweep runs the trial no more: somebody asked to stop it."""

    def refresh(self, pack_sizes: Sequence[int], running: Set[str]) -> None:
        """What goes on now, told several times a second.

        `pack_sizes`: trials of each pack that is with a worker; `running`: the ids of those that
        workers are at, which a trial whose worker died, or that somebody asked to stop, is not."""

    def note(self, text: str) -> None:
        """One sentence for the reader: an address, a retry, something waited for."""


EVENTS = tuple(name for name in vars(Listener) if not name.startswith("_"))


class Several(Listener):
    """A listener that tells several others, in their order."""

    def __init__(self, *listeners: Listener) -> None:
        for name in EVENTS:
            setattr(
                self, name, partial(_call_all, [getattr(listener, name) for listener in listeners])
            )


def _call_all(methods: list[Any], *arguments: object) -> None:
    for method in methods:
        method(*arguments)
