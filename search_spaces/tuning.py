"""Tuning in stages: a grid, then a search, then new seeds for the best cell of each side.

A side is a compared model. Sides share search spaces and number of trials for a fair comparison.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

from trainables.config import AnyConfig, CorpusConfig, Goal, value_at
from trainables.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Dimension:
    """A config value to tune, with choices at paper scale."""

    key: str
    """Dotted, as in `--set`: "model.dropout_hidden"."""
    short: str
    """Short form of the key, for trial names."""
    values: tuple[Any, ...]
    """Ascending choices; a search treats neighbours as similar, unless they are text."""
    when: tuple[tuple[str, Any, bool], ...] = ()
    """Conditions: key of an earlier dimension, its value, and whether configs have this value if
    that dimension is not active."""

    def is_active(self, chosen: Mapping[str, Any]) -> bool:
        """Return whether the conditions hold for these values of the earlier dimensions."""
        return all(
            chosen[key] == value if key in chosen else otherwise
            for key, value, otherwise in self.when
        )


VALID_LOSS = Goal("valid_loss")
Method = Literal["tpe", "random"]
Space = tuple[Dimension, ...]
"""Dimensions of a search. Their choices are combined in every way."""
Cell = tuple[int, ...]
"""Index of the choice for each dimension; 0 for one whose conditions do not hold."""


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """Definition of sides, search spaces and final seeds."""

    sides: Mapping[str, Callable[[CorpusConfig], Any]]
    """Function that makes the config of each side. Only final trials replace its seed."""
    stage1: Space
    """Grid of settings. Each side of the comparison trains all of them."""
    stage2: Space
    """Space in which the search picks equally many cells for each side."""
    seeds: tuple[int, ...]
    """Seeds for each side's best cell in both stages."""

    goal: Goal = VALID_LOSS
    """Metric that the search improves: the final one, or else the best of all epochs."""
    method: Method = "tpe"
    budget: int | None = None
    """Number of search trials for each side; by default that of the scale."""

    def __post_init__(self) -> None:
        bad_names = [name for name in self.sides if not re.fullmatch(r"\S+", name)]
        if bad_names or not self.sides:
            raise UserError(
                "tuning: needs sides whose names are single words, because trial names begin with "
                f"them; got {', '.join(map(repr, self.sides)) or 'none'}"
            )


def cells(space: Space, chosen: Mapping[str, Any] = MappingProxyType({})) -> Iterator[Cell]:
    """Yield all cells, the last dimension changing fastest.

    `chosen` has values by key of dimensions before those of `space`.
    """
    if not space:
        yield ()
        return
    dimension, *later = space
    if not dimension.is_active(chosen):
        yield from ((0, *cell) for cell in cells(tuple(later), chosen))
        return
    for index, value in enumerate(dimension.values):
        for cell in cells(tuple(later), {**chosen, dimension.key: value}):
            yield (index, *cell)


def cell_count(space: Space) -> int:
    """Return the number of cells."""
    condition_keys = {key for dimension in space for key, _, _ in dimension.when}
    controls = tuple(one for one in space if one.key in condition_keys)
    others = [one for one in space if one.key not in condition_keys]
    return sum(
        math.prod(len(one.values) for one in others if one.is_active(chosen))
        for cell in cells(controls)
        for chosen in [choices(controls, cell)]
    )


def choices(space: Space, cell: Cell) -> dict[str, Any]:
    """Return the chosen value of each active dimension, by key."""
    chosen: dict[str, Any] = {}
    for dimension, index in zip(space, cell, strict=True):
        if dimension.is_active(chosen):
            chosen[dimension.key] = dimension.values[index]
    return chosen


def as_cell(space: Space, indices: Cell) -> Cell:
    """Return the cell with these indices of the active dimensions."""
    chosen = choices(space, indices)
    pairs = zip(space, indices, strict=True)
    return tuple(index if dimension.is_active(chosen) else 0 for dimension, index in pairs)


def cell_text(space: Space, config: AnyConfig) -> str:
    """Return the config's cell for a trial's name: "de=0.2 dh=0.225 noise=0.1"."""
    content = config.model_dump(mode="json")
    values = {dimension.short: value_at(content, dimension.key) for dimension in space}
    return " ".join(
        f"{short}={value:g}" if isinstance(value, float) else f"{short}={value}"
        for short, value in values.items()
    )
