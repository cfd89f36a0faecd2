"""Interface of training recipes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trainables.corpora import Corpus
from trainables.language_model import Contexts, LanguageModel


class Window(NamedTuple):
    """Time steps `start` to `end` - 1 of the train streams.

    At the end of the text, a window is shorter than its `drawn_length`.
    """

    start: int
    end: int
    drawn_length: int

    @property
    def steps(self) -> int:
        """Return the number of time steps."""
        return self.end - self.start


class Recipe(ABC):
    """Training decisions that depend only on the config and the train text, not on the run.

    `draws` is the run's random generator, used in the order of the steps.
    """

    longest_window: int
    """Time steps."""

    @abstractmethod
    def model(self, corpus: Corpus, draws: torch.Generator) -> LanguageModel:
        """Return the model with its initial weights."""

    @abstractmethod
    def first_position(self, draws: torch.Generator) -> int:
        """Return the time step at which a pass through the text starts."""

    @abstractmethod
    def window(self, position: int, draws: torch.Generator) -> Window:
        """Return the next window, which starts at this time step."""

    @abstractmethod
    def pass_is_over(self, position: int) -> bool:
        """Return whether no window remains from this time step."""

    @abstractmethod
    def rate(self, base_rate: float, window: Window, tokens: int) -> float:
        """Return the learning rate of a step.

        `tokens`: total train tokens read, including this step's.
        """

    def objective(self, loss: Tensor, contexts: Contexts) -> Tensor:  # noqa: ARG002
        """Return what a step minimises; by default, the loss."""
        return loss

    def starts_averaging(self, losses: Sequence[float]) -> bool:  # noqa: ARG002
        """Return whether averaging starts, given the epochs' validation losses; default: never."""
        return False
