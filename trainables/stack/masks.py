"""Dropout masks and noise of a stack: each model draws from its own generator, in its own order.

Draws go into fixed tensors before the part of a step that a GPU captures. Captured generators
depend on torch's version; here every stream is bit for bit that of the model alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

NOISE = "noise"
Masks = Mapping[str, Tensor]
"""Masks and noise of all models by `Draw` name, with a leading G; without draws of no model."""


class Draw(NamedTuple):
    """One tensor that a model draws at every step, as in `trainables.draws`."""

    name: str
    shape: tuple[int, ...]
    """Noise: the shape of one time step."""
    rate: float
    """Dropout rate, or the deviation of noise."""


class StackedDraws:
    """The draws of all models."""

    def __init__(
        self,
        draws: Sequence[Sequence[Draw]],
        generators: Sequence[torch.Generator],
        like: Tensor,
        longest: int,
    ) -> None:
        """No window exceeds `longest` time steps. Dtype and device are those of `like`."""
        self._draws, self._generators = draws, generators
        self.masks: dict[str, Tensor] = {}
        for draw in {draw.name: draw for model_draws in draws for draw in model_draws}.values():
            # Neutral values, for a model without this draw.
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
                values = self.masks[draw.name][row]
                if draw.name == NOISE:
                    values[:length].normal_(0.0, draw.rate, generator=generator)
                else:
                    values.bernoulli_(1 - draw.rate, generator=generator).div_(1 - draw.rate)
