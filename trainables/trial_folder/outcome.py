"""A trial's outcome and its metrics per epoch."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter, field_validator
from typing_extensions import override

from trainables.config import Frozen
from trainables.trial_folder.metrics import Metric, check_metrics

FinalState = Literal["done", "diverged", "failed", "pruned"]
"""A pruned trial was stopped early by a search; a plan that needs the whole trial resumes it."""
Count = Annotated[int, Field(ge=0, lt=2**31)]
MeasurementName = Annotated[str, Field(pattern=r"^[^\x00-\x1f]+@[0-9]{1,9}$")]


def perplexity(loss: float) -> float:
    """Return exp(loss) for nats per token; infinite on overflow."""
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


class Epoch(Frozen):
    """One point of a trial's curve."""

    epoch: Count
    """Increases within a trial."""
    seconds: float
    """Wall time of training this epoch, without validation if the trainer knows it."""

    @property
    def numbers(self) -> dict[str, float]:
        """Return the metrics by name, the one that figures show by default first."""
        values = self.model_dump(exclude={"epoch", "seconds"}, exclude_none=True)
        return {name: value for name, value in values.items() if not isinstance(value, bool)}

    @override
    def __str__(self) -> str:
        """Return the numbers in one line."""
        numbers = ", ".join(f"{name} {value:.6g}" for name, value in self.numbers.items())
        return f"epoch {self.epoch}: {numbers}; {self.seconds:.1f} s"


class UserEpoch(Epoch, extra="allow"):
    """An epoch of a user's own trial, with any metrics."""

    __pydantic_extra__: dict[str, bool | int | float] = Field(init=False)


class EpochMetrics(Epoch):
    """Metrics of an epoch of a language model, counted from 1.

    Losses: mean cross-entropy in nats per token, without regularisers. Ranks are measured on a
    fixed sample of validation contexts, with the weights that validation used. `kl_rank` allows a
    KL divergence of 0.01 nats; only Transformers have it.
    """

    tokens: Annotated[int, Field(ge=0, lt=2**63)]
    """Train tokens seen so far, including this epoch."""
    train_loss: float
    valid_loss: float
    averaging: bool
    """True if validation used the averaged weights."""
    press_rank: Count | None = None
    entropy_rank: float | None = None
    kl_rank: Count | None = None

    @property
    def valid_perplexity(self) -> float:
        """Perplexity of the validation loss."""
        return perplexity(self.valid_loss)

    @property
    @override
    def numbers(self) -> dict[str, float]:
        """Return the metrics by name, and first the perplexities."""
        train = perplexity(self.train_loss)
        first = {"valid_perplexity": self.valid_perplexity, "train_perplexity": train}
        return first | super().numbers


AnyEpoch = Annotated[EpochMetrics | UserEpoch, Field(union_mode="left_to_right")]
EPOCH: TypeAdapter[AnyEpoch] = TypeAdapter(AnyEpoch)


class TrialOutcome(Frozen):
    """The final record of one attempt at a trial, in `result.json`.

    The store can record every outcome: epochs are in order, integers have 64 bits, text is
    printable. Metric names are unique over all measurements, because each metric is a column.
    """

    trial_id: str
    state: FinalState
    cause: str | None = None
    """Reason for the state in one sentence; None if it is done."""
    epochs: tuple[AnyEpoch, ...] = ()
    measurements: dict[MeasurementName, dict[str, Metric]] = {}
    environment: dict[str, str] = {}
    checksums: dict[str, str] = {}
    """SHA-256 of the files next to this record, by name."""

    @field_validator("cause", mode="before")
    @classmethod
    def _replace_unprintable(cls, cause: Any) -> Any:
        if not isinstance(cause, str):
            return cause
        return "".join(
            character if character.isprintable() or character == "\n" else "?"
            for character in cause
        )

    @field_validator("epochs")
    @classmethod
    def _check_order(cls, epochs: tuple[Epoch, ...]) -> tuple[Epoch, ...]:
        if any(later.epoch <= earlier.epoch for earlier, later in pairwise(epochs)):
            raise ValueError("epoch numbers must increase")
        return epochs

    @field_validator("measurements")
    @classmethod
    def _check_metrics(
        cls, measurements: dict[str, dict[str, Metric]]
    ) -> dict[str, dict[str, Metric]]:
        for name, metrics in measurements.items():
            check_metrics(metrics, measurement=name)
        names = Counter(metric for metrics in measurements.values() for metric in metrics)
        if duplicates := [name for name, count in names.items() if count > 1]:
            raise ValueError(f"the metric {duplicates[0]} is in two measurements")
        return measurements

    @property
    def model_epochs(self) -> tuple[EpochMetrics, ...]:
        """Return the epochs of a language model; empty for another trial."""
        return tuple(epoch for epoch in self.epochs if isinstance(epoch, EpochMetrics))

    @property
    def metrics(self) -> dict[str, Metric]:
        """Metrics of all measurements."""
        return {
            name: value for metrics in self.measurements.values() for name, value in metrics.items()
        }
