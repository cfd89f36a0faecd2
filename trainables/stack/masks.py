"""The dropout masks and the noise of a stack: each model draws from its own generator, in the order
of the model alone.

All draws go into tensors that stay where they are, before the part of a step that is captured on a
GPU: what a capture does with a generator is up to torch's version, and here a model's stream is bit
for bit that of the model alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

NOISE = "noise"
Masks = Mapping[str, Tensor]
"""What multiplies, or is added to, the values of all models: by the names of `Draw`, with a leading
G; without what no model draws."""


class Draw(NamedTuple):
    """One tensor that a model draws at every step, as `trainables.draws` does."""

    name: str
    shape: tuple[int, ...]
    """Of noise, that of a time step."""
    rate: float
    """Of dropout; of noise, its deviation."""


class StackedDraws:
    """The draws of all models."""

    def __init__(
        self,
        draws: Sequence[Sequence[Draw]],
        generators: Sequence[torch.Generator],
        like: Tensor,
        longest: int,
    ) -> None:
        """`draws` are those of every model, in its order. No window has more than `longest` time
        steps; dtype and device are those of `like`."""
        self._draws, self._generators = draws, generators
        self.masks: dict[str, Tensor] = {}
        for draw in {draw.name: draw for of_model in draws for draw in of_model}.values():
            # A model that does not draw it keeps what has no effect.
            self.masks[draw.name] = (
                like.new_zeros(len(draws), longest, *draw.shape)
                if draw.name == NOISE
                else like.new_ones(len(draws), *draw.shape)
            )

    @torch.no_grad()
    def draw(self, lengths: Sequence[int]) -> None:
        """Draw for windows of these lengths in time steps."""
        models = zip(self._draws, self._generators, lengths, strict=True)
        for row, (draws, generator, length) in enumerate(models):
            for draw in draws:
                drawn = self.masks[draw.name][row]
                if draw.name == NOISE:
                    drawn[:length].normal_(0.0, draw.rate, generator=generator)
                else:
                    drawn.bernoulli_(1 - draw.rate, generator=generator).div_(1 - draw.rate)
