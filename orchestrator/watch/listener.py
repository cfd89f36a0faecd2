"""What a sweep tells whoever watches it while it runs."""

from __future__ import annotations

from typing import Protocol

from trainables.trial_folder.outcome import EpochMetrics, TrialOutcome


class Listener(Protocol):
    """Hears of every event once, on the driver's main thread, in the order in which events arrive there."""

    def started(self, trial_id: str, name: str) -> None:
        """A worker took the trial up; again for every attempt."""

    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        """An epoch ended. Workers report about two a second at most, so not every epoch is heard."""

    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        """The trial is done, pruned, diverged or failed, and the store knows. Measurements are absent where another
        driver ran it."""

    def stopped(self, trial_id: str, name: str) -> None:
        """Somebody asked to stop the trial, and this sweep runs it no more."""

    def added(self, count: int) -> None:
        """Another command added so many trials to the study, and this sweep runs them, too."""

    def note(self, text: str) -> None:
        """One sentence for the reader: an address, a retry, something waited for."""


class Several:
    """A listener that tells several others, in their order."""

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = listeners

    def started(self, trial_id: str, name: str) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener.started(trial_id, name)

    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener.epoch(trial_id, metrics)

    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener.finished(trial_id, outcome)

    def stopped(self, trial_id: str, name: str) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener.stopped(trial_id, name)

    def added(self, count: int) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener.added(count)

    def note(self, text: str) -> None:
        """Tell all of them."""
        for listener in self._listeners:
            listener.note(text)


class Silent:
    """A listener that tells nobody."""

    def started(self, trial_id: str, name: str) -> None:
        """Say nothing."""

    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        """Say nothing."""

    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        """Say nothing."""

    def stopped(self, trial_id: str, name: str) -> None:
        """Say nothing."""

    def added(self, count: int) -> None:
        """Say nothing."""

    def note(self, text: str) -> None:
        """Say nothing."""
