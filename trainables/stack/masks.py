"""Dropout masks and noise of a stack, bit for bit those of each model trained alone.

They are drawn before a CUDA graph runs, because generators in graphs depend on torch's version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

NOISE = "noise"
Masks = Mapping[str, Tensor]
"""Masks and noise by `Draw` name; axis 0 is the model."""


class Draw(NamedTuple):
    """A dropout mask, or noise, that a model draws at every step.

    `rate` is the dropout rate, or the noise's standard deviation. The shape of noise is that of one
    time step.
    """

    name: str
    shape: tuple[int, ...]
    rate: float


class StackedDraws:
    """Masks and noise of all models, redrawn per step. `longest`: maximum window length."""

    def __init__(
        self,
        draws: Sequence[Sequence[Draw]],
        generators: Sequence[torch.Generator],
        like: Tensor,
        longest: int,
    ) -> None:
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
        """Draw masks and noise for the next windows; `lengths` has each model's time steps."""
        models = zip(self._draws, self._generators, lengths, strict=True)
        for row, (draws, generator, length) in enumerate(models):
            for draw in draws:
                values = self.masks[draw.name][row]
                if draw.name == NOISE:
                    values[:length].normal_(0.0, draw.rate, generator=generator)
                else:
                    values.bernoulli_(1 - draw.rate, generator=generator).div_(1 - draw.rate)
