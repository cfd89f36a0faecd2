"""The dropout masks and the noise of a stack: every model's from its own generator, in the order of
the model alone.

Models that would draw the same, as those of one seed do, draw once. All draws go into tensors that
stay where they are, before the part of a step that is captured on a GPU: what a capture does with a
generator is up to torch's version, and here a model's stream is bit for bit that of the model
alone.

Shapes: G models, R that differ in what they draw, B batch, K experts, D width of the embeddings.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

NOISE, LATENT = "noise", "latent."


@dataclass(frozen=True)
class Masks:
    """What multiplies, or is added to, the values of all models. Models that share their draws may
    share memory."""

    by_name: dict[str, Tensor]
    """With a leading G, by the names of `Draw`; without those that no model draws."""
    latent: list[Tensor | None]
    """By model: of the context vectors of a mixture, B x K D."""


class Draw(NamedTuple):
    """One tensor that a model draws at every step, as `trainables.draws` does."""

    name: str
    shape: tuple[int, ...]
    """Of noise, that of a time step."""
    rate: float
    """Of dropout; of noise, its deviation."""


class StackedDraws:
    """The draws of all models, in tensors that stay where they are while the same models share
    them."""

    def __init__(
        self,
        draws: Sequence[Sequence[Draw]],
        generators: Sequence[torch.Generator],
        like: Tensor,
        longest: int,
    ) -> None:
        """`draws` are those of every model, in its order. No window has more than `longest` time
        steps; dtype and device are those of `like`."""
        self._draws, self._generators, self._like, self._longest = draws, generators, like, longest
        self._groups: list[list[int]] = []
        """Of models that share their draws."""
        self._drawn: dict[str, Tensor] = {}
        """By name, with a leading R."""
        self._group_G: Tensor

    @torch.no_grad()
    def draw(self, lengths: Sequence[int]) -> bool:
        """Draw for windows of so many time steps; returns whether the draws lie in other tensors
        than before."""
        groups = self._alike(lengths)
        if moved := groups != self._groups:
            self._share(groups)
        for row, (first, *others) in enumerate(groups):
            generator = self._generators[first]
            for draw in self._draws[first]:
                drawn = self._drawn[draw.name][row]
                if draw.name == NOISE:
                    drawn[: lengths[first]].normal_(0.0, draw.rate, generator=generator)
                else:
                    drawn.bernoulli_(1 - draw.rate, generator=generator).div_(1 - draw.rate)
            if others:
                state = generator.get_state()
            for other in others:
                self._generators[other].set_state(state)
        return moved

    def masks(self) -> Masks:
        """What was drawn."""
        rows = {index: row for row, members in enumerate(self._groups) for index in members}
        latent = [
            next((draw.name for draw in draws if draw.name.startswith(LATENT)), None)
            for draws in self._draws
        ]
        return Masks(
            {
                name: self._of_models(drawn)
                for name, drawn in self._drawn.items()
                if not name.startswith(LATENT)
            },
            [
                None if name is None else self._drawn[name][rows[index]]
                for index, name in enumerate(latent)
            ],
        )

    def _alike(self, lengths: Sequence[int]) -> list[list[int]]:
        """The models by what they will draw: by the states of their generators, which are on the
        host, and how much it is. Noise is drawn for a window, all else whatever its length.

        Models that have parted stay so, as tensors move with the groups: a GPU's generator may be
        in the same state after noise for windows of other lengths."""
        before = {index: row for row, members in enumerate(self._groups) for index in members}
        groups: dict[Hashable, list[int]] = {}
        for index, (generator, draws) in enumerate(zip(self._generators, self._draws, strict=True)):
            noisy = any(draw.name == NOISE for draw in draws)
            state = generator.get_state().numpy().tobytes()
            key = before.get(index), tuple(draws), lengths[index] if noisy else 0, state
            groups.setdefault(key, []).append(index)
        return list(groups.values())

    def _share(self, groups: list[list[int]]) -> None:
        """Make room for the draws of these groups; of a model that does not draw something, it has
        no effect."""
        self._groups = groups
        self._drawn.clear()
        for draw in (draw for draws in self._draws for draw in draws):
            if draw.name == NOISE:
                self._drawn[NOISE] = self._like.new_zeros(len(groups), self._longest, *draw.shape)
            elif draw.name not in self._drawn:
                self._drawn[draw.name] = self._like.new_ones(len(groups), *draw.shape)
        row_of = {index: row for row, members in enumerate(groups) for index in members}
        self._group_G = torch.tensor([row_of[index] for index in range(len(self._draws))]).to(
            self._like.device
        )

    def _of_models(self, drawn: Tensor) -> Tensor:
        """With a leading G."""
        if len(drawn) == len(self._draws):
            return drawn
        return (
            drawn.expand(len(self._draws), *drawn.shape[1:])
            if len(drawn) == 1
            else drawn[self._group_G]
        )
