"""What every such log is told of a trial, and under which names."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from orchestrator.store import PlannedTrial, TrialState
from trainables.trial_folder import EpochMetrics, Metric


class Sink(Protocol):
    """One log of the trials of one study. Any method may raise anything: its server, its disk."""

    name: str
    """For sentences: "MLflow"."""
    place: str
    """Where it writes, as it may be printed."""

    def holds(self, trial: PlannedTrial, state: TrialState, metrics: Mapping[str, float]) -> bool:
        """Whether the log has the trial already as ended in this state, with these final metrics."""

    def begin(self, trial: PlannedTrial, epochs: Sequence[EpochMetrics]) -> None:
        """The trial runs, and has had these epochs before. One that the log knows goes on there."""

    def epoch(self, trial_id: str, epoch: EpochMetrics) -> None:
        """An epoch of a trial that runs; a resumed trial may repeat some."""

    def end(self, trial_id: str, state: TrialState, cause: str | None, metrics: Mapping[str, float]) -> None:
        """A trial that runs has ended."""

    def close(self) -> None:
        """Nothing follows; trials that have not ended were interrupted."""


def scalars(epoch: EpochMetrics) -> dict[str, float]:
    """The curves of a trial: losses in nats per token, seconds of training."""
    return {
        "loss/train": epoch.train_loss,
        "loss/validation": epoch.valid_loss,
        "perplexity/validation": math.exp(epoch.valid_loss),
        "seconds/epoch": epoch.seconds,
    }


def numbers(metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Of final metrics those that are numbers: words and JSON texts are for the store."""
    return {
        name: float(value)
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
