"""How models of one kind are trained: what the loop asks where kinds differ."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from trainables.corpora import Corpus
from trainables.language_model import Contexts, LanguageModel


class Window(NamedTuple):
    """Time steps of the train streams: the first one, the one after the last, and the length that
    was drawn, of which the end of the text may cut off some."""

    start: int
    end: int
    drawn: int

    @property
    def steps(self) -> int:
        """How many time steps it has."""
        return self.end - self.start


class Recipe(ABC):
    """Decides by the config and the train text alone, and holds nothing of a run's state. `draws`
    is the run's generator, and what is drawn from it is drawn in the order of the steps."""

    longest_window: int
    """The most time steps that a window has."""

    @abstractmethod
    def model(self, corpus: Corpus, draws: torch.Generator) -> LanguageModel:
        """The model with its starting weights."""

    @abstractmethod
    def first_position(self, draws: torch.Generator) -> int:
        """The time step at which a pass through the text starts."""

    @abstractmethod
    def window(self, position: int, draws: torch.Generator) -> Window:
        """The next window from this time step on."""

    @abstractmethod
    def pass_is_over(self, position: int) -> bool:
        """Whether no window is left from this time step on."""

    @abstractmethod
    def rate(self, base_rate: float, window: Window, tokens: int) -> float:
        """The learning rate of a step through the window, after which `tokens` train tokens have
        been read in all."""

    def objective(self, loss: Tensor, contexts: Contexts) -> Tensor:  # noqa: ARG002
        """What a step minimises; here, the loss."""
        return loss

    def starts_averaging(self, losses: Sequence[float]) -> bool:  # noqa: ARG002
        """Whether weights are averaged after epochs with these validation losses; here, never."""
        return False
