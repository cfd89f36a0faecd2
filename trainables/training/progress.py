"""Progress of a training run, and the errors that end it."""

from __future__ import annotations

from pydantic import BaseModel

from trainables.trial_folder import EpochMetrics


class DivergedError(Exception):
    """A loss became too large or not finite; the text reports which loss and when."""


class PrunedError(Exception):
    """A search stopped this trial; the text gives the reason."""


class Progress(BaseModel):
    """The part of a training's state that is not a tensor."""

    step: int = 0
    position: int = 0
    """Time step of the train streams at which the next window starts."""
    epoch_tokens: int = 0
    tokens: int = 0
    epoch_seconds: float = 0.0
    wall_seconds: float = 0.0
    """Seconds of training and validation in total."""
    epochs: list[EpochMetrics] = []
    averaging_steps: int | None = None
    """Number of steps in the weight average; None before averaging starts."""
    kept_epoch: int | None = None
