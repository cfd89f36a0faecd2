"""Tuning in stages: a grid, then a search, then new seeds for the best cell of each side.

A side is a compared model. Sides share search spaces and number of trials for a fair comparison.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from trainables.config import CorpusConfig, TrialConfig, value_at, with_values
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """A config value to tune, with choices at paper scale."""

    key: str
    """Dotted, as in `--set`: "model.dropout_hidden"."""
    short: str
    """Short form of the key, for trial names."""
    values: tuple[float, ...]
    """Ascending choices; a search treats neighbours as similar."""


Space = tuple[Dimension, ...]
"""Dimensions of a search. Their choices are combined in every way."""
Cell = tuple[int, ...]
"""Index of the choice for each dimension."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Definition of sides, search spaces and final seeds."""

    sides: Mapping[str, Callable[[CorpusConfig], TrialConfig]]
    """Function that makes the config of each side. Only final trials replace its seed."""
    stage1: Space
    """Grid of settings. Each side of the comparison trains all of them."""
    stage2: Space
    """Space in which the search picks equally many cells for each side."""
    seeds: tuple[int, ...]
    """Seeds for each side's best cell: that of the lowest validation loss in both stages."""

    def __post_init__(self) -> None:
        bad_names = [name for name in self.sides if not re.fullmatch(r"\S+", name)]
        if bad_names or not self.sides:
            raise UserError(
                "tuning: needs sides whose names are single words, because trial names begin with "
                f"them; got {', '.join(map(repr, self.sides)) or 'none'}"
            )


def cells(space: Space) -> Iterator[Cell]:
    """Yield all cells, the last dimension changing fastest."""
    return itertools.product(*(range(len(dimension.values)) for dimension in space))


def cell_count(space: Space) -> int:
    """Return the number of cells."""
    return math.prod(len(dimension.values) for dimension in space)


def with_cell(config: TrialConfig, space: Space, cell: Cell) -> TrialConfig:
    """Return the config with the cell's choices."""
    choices = {
        dimension.key: dimension.values[index] for dimension, index in zip(space, cell, strict=True)
    }
    return TrialConfig.model_validate(with_values(config.model_dump(mode="json"), choices))


def cell_text(space: Space, config: TrialConfig) -> str:
    """Return the config's cell for a trial's name: "de=0.2 dh=0.225 noise=0.1"."""
    content = config.model_dump(mode="json")
    return " ".join(
        f"{dimension.short}={value_at(content, dimension.key):g}" for dimension in space
    )
