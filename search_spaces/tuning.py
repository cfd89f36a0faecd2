"""Tuning in stages, declared: sides that compete, a grid for each, a search in a larger space, the
best with new seeds.

Sides are tuned with the same spaces and the same budget, so that their best can be compared fairly.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainables.config import CorpusConfig, TrialConfig, with_values
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """One value of the config that is tuned, with its choices at paper scale."""

    key: str
    """Dotted, as for `--set`: "model.dropout_hidden"."""
    short: str
    """What it is called in the names of trials."""
    values: tuple[float, ...]
    """In ascending order: a search takes neighbours for alike."""


Space = tuple[Dimension, ...]
"""All combinations of the choices of its dimensions."""
Cell = tuple[int, ...]
"""One combination: for each dimension the index of its choice."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What is tuned, how, and which seeds the best of each side get."""

    sides: Mapping[str, Callable[[CorpusConfig], TrialConfig]]
    """By name, the config at paper scale that the spaces change; its seed is that of all trials but
    the final ones."""
    stage1: Space
    """Every cell of it is trained, for every side."""
    stage2: Space
    """A search picks cells of it, the same number for every side."""
    seeds: tuple[int, ...]
    """Of the final trials of each side's best cell (the least validation loss of stages 1 and
    2)."""

    def __post_init__(self) -> None:
        """Raise UserError for sides whose trials could not be told apart."""
        wrong = [name for name in self.sides if not re.fullmatch(r"\S+", name)]
        if wrong or not self.sides:
            raise UserError(
                "a tuning has one or more sides, and their names are single words, as names of "
                "trials begin with them; "
                f"got {', '.join(map(repr, self.sides)) or 'none'}: rename them"
            )


def cells(space: Space) -> Iterator[Cell]:
    """All of them, the last dimension changing fastest."""
    return itertools.product(*(range(len(dimension.values)) for dimension in space))


def cell_count(space: Space) -> int:
    """How many cells there are."""
    return math.prod(len(dimension.values) for dimension in space)


def with_cell(config: TrialConfig, space: Space, cell: Cell) -> TrialConfig:
    """The config with the cell's choices in place of its own."""
    choices = {
        dimension.key: dimension.values[index] for dimension, index in zip(space, cell, strict=True)
    }
    return TrialConfig.model_validate(with_values(config.model_dump(mode="json"), choices))


def cell_text(space: Space, cell: Cell) -> str:
    """What a cell is called in the names of trials: "de=0.2 dh=0.225 noise=0.1"."""
    return " ".join(
        f"{dimension.short}={dimension.values[index]:g}"
        for dimension, index in zip(space, cell, strict=True)
    )
