"""What a trial leaves behind: metrics by epoch, measurements by name and version, a state, a
cause."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from trainables.config import Frozen
from trainables.trial_folder.metrics import Metric, Metrics

FinalState = Literal["done", "diverged", "failed", "pruned"]
"""Pruned: stopped early by a search. The checkpoint is kept, and a plan that wants the whole trial
goes on from it."""
Count = Annotated[int, Field(ge=0, lt=2**31)]
LongCount = Annotated[int, Field(ge=0, lt=2**63)]
MeasurementName = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+@[0-9]{1,9}$")]


def perplexity(loss: float) -> float:
    """Of a mean cross-entropy in nats per token; infinite where that is beyond the largest
    number."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


class EpochMetrics(Frozen):
    """One epoch of training. Losses are mean cross-entropies in nats per token, without
    regularisers."""

    epoch: Count
    """1 for the first."""
    tokens: LongCount
    """Train tokens seen so far, this epoch included."""
    train_loss: float
    valid_loss: float
    averaging: bool
    """True where validation used the averaged weights."""
    seconds: float
    """Wall time of training this epoch, validation left out."""
    press_rank: Count | None = None
    """Of the log-P matrix over a fixed sample of validation contexts, with the weights that
    validation used; None: not taken. So are the other ranks."""
    entropy_rank: float | None = None
    kl_rank: Count | None = None
    """For a bound of 0.01 nats; of Transformers."""

    @property
    def valid_perplexity(self) -> float:
        """That of the validation loss."""
        return perplexity(self.valid_loss)


class TrialOutcome(Frozen):
    """The final record of one attempt at a trial; `result.json` in the trial's folder holds one.

    What is accepted can be recorded: epochs in order, integers of 64 bits, text that can be
    printed. `measurements` maps "name@version" to finite metrics, for example "spectrum@1" ->
    {"press_rank": 402, ...}. Metric names are unique over all measurements, so that a table of
    results has one column each."""

    trial_id: str
    state: FinalState
    cause: str | None = None
    """One sentence where state is not done."""
    epochs: tuple[EpochMetrics, ...] = ()
    measurements: dict[MeasurementName, Metrics] = {}
    environment: dict[str, str] = {}
    """Versions of the code and packages, host, device: see
    `trainables.trial_folder.environment`."""
    checksums: dict[str, str] = {}
    """SHA-256 of the files beside this record, by name."""

    @field_validator("cause", mode="before")
    @classmethod
    def _printable(cls, cause: Any) -> Any:
        """An exception may say anything."""
        if not isinstance(cause, str):
            return cause
        return "".join(sign if sign.isprintable() or sign == "\n" else "?" for sign in cause)

    @field_validator("epochs")
    @classmethod
    def _in_order(cls, epochs: tuple[EpochMetrics, ...]) -> tuple[EpochMetrics, ...]:
        if any(later.epoch <= earlier.epoch for earlier, later in pairwise(epochs)):
            raise ValueError("epochs are numbered upwards")
        return epochs

    @field_validator("measurements")
    @classmethod
    def _unique(cls, measurements: dict[str, Metrics]) -> dict[str, Metrics]:
        names = Counter(metric for metrics in measurements.values() for metric in metrics)
        if twice := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"the metric {twice[0]} is in two measurements")
        return measurements

    @property
    def metrics(self) -> dict[str, Metric]:
        """Of all measurements."""
        return {
            name: value for metrics in self.measurements.values() for name, value in metrics.items()
        }
