"""What a trial leaves behind: metrics by epoch, measurements by name and version, a state, a cause."""

from __future__ import annotations

from typing import Literal, NamedTuple

from trainables.config import Frozen

FinalState = Literal["done", "diverged", "failed", "pruned"]
"""Pruned: stopped early by a search. The checkpoint is kept, and a plan that wants the whole trial goes on from it."""
Metric = int | float | str | bool


class EpochRanks(NamedTuple):
    """Of the log-P matrix over a fixed sample of validation contexts, at the end of an epoch; None: not taken."""

    press_rank: int | None = None
    entropy_rank: float | None = None


class EpochMetrics(Frozen):
    """One epoch of training. Losses are mean cross-entropies in nats per token, without regularisers."""

    epoch: int
    """1 for the first."""
    tokens: int
    """Train tokens seen so far, this epoch included."""
    train_loss: float
    valid_loss: float
    averaging: bool
    """True where validation used the averaged weights."""
    seconds: float
    """Wall time of training this epoch, validation left out."""
    press_rank: int | None = None
    """With `entropy_rank`: of the weights that validation used, see `EpochRanks`."""
    entropy_rank: float | None = None


class TrialOutcome(Frozen):
    """The final record of one attempt at a trial; `result.json` in the trial's folder holds one.

    `measurements` maps "name@version" to finite metrics, for example "spectrum@1" -> {"press_rank": 402, ...}. Metric
    names are unique over all measurements, so that a table of results has one column each.
    """

    trial_id: str
    state: FinalState
    cause: str | None = None
    """One sentence where state is not done."""
    epochs: tuple[EpochMetrics, ...] = ()
    measurements: dict[str, dict[str, Metric]] = {}
    environment: dict[str, str] = {}
    """Versions of the code and packages, host, device: see `trainables.trial_folder.environment`."""

    @property
    def metrics(self) -> dict[str, Metric]:
        """Of all measurements."""
        return {name: value for metrics in self.measurements.values() for name, value in metrics.items()}
