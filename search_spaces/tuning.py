"""Tuning in stages, declared: sides that compete, a grid for each, a search in a larger space, the best with new seeds.

Sides are tuned with the same spaces and the same budget, so that their best can be compared fairly.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from trainables.config import CorpusConfig, TrialConfig
from trainables.config.dotted_keys import with_values
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
Stage = Literal["stage1", "stage2", "final"]


@dataclass(frozen=True, kw_only=True)
class Tuning:
    """What is tuned, how, and which seeds the best of each side get."""

    sides: Mapping[str, Callable[[CorpusConfig], TrialConfig]]
    """By name, the config at paper scale that the spaces change; its seed is that of all trials but the final ones."""
    stage1: Space
    """Every cell of it is trained, for every side."""
    stage2: Space
    """A search picks cells of it, the same number for every side."""
    seeds: tuple[int, ...]
    """Of the final trials of each side's best cell (the least validation loss of stages 1 and 2)."""

    def __post_init__(self) -> None:
        """Raise UserError for sides whose trials could not be told apart."""
        wrong = [name for name in self.sides if not re.fullmatch(r"\S+", name)]
        if wrong or not self.sides:
            raise UserError(
                "a tuning has one or more sides, and their names are single words, as names of trials begin with them; "
                f"got {', '.join(map(repr, self.sides)) or 'none'}: rename them"
            )


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where in a tuning a trial stands."""

    side: str
    stage: Stage
    number: int | None = None
    """Of a trial of stage 2: 1 for the side's first."""


def stage_of(name: str) -> Place | None:
    """Side and stage of a trial by its name; None for a name that no tuning gave."""
    found = re.match(r"(\S+) (stage1|stage2 #(\d+)|final) ", name)
    if found is None:
        return None
    side, stage, number = found.groups()
    if number is not None:
        return Place(side=side, stage="stage2", number=int(number))
    return Place(side=side, stage="final" if stage == "final" else "stage1")


def stage1_name(side: str, space: Space, cell: Cell) -> str:
    """ "mos_dagger stage1 de=0.2 dh=0.225 noise=0.1"."""
    return f"{side} stage1 {_choices(space, cell)}"


def stage2_name(side: str, number: int, space: Space, cell: Cell) -> str:
    """ "mos_dagger stage2 #7 de=0.31 dh=0.2 noise=0.1"."""
    return f"{side} stage2 #{number} {_choices(space, cell)}"


def final_name(side: str, seed: int) -> str:
    """ "mos_dagger final seed=831"."""
    return f"{side} final seed={seed}"


def _choices(space: Space, cell: Cell) -> str:
    return " ".join(
        f"{dimension.short}={dimension.values[index]:g}" for dimension, index in zip(space, cell, strict=True)
    )


def cells(space: Space) -> Iterator[Cell]:
    """All of them, the last dimension changing fastest."""
    return itertools.product(*(range(len(dimension.values)) for dimension in space))


def cell_count(space: Space) -> int:
    """How many cells there are."""
    return math.prod(len(dimension.values) for dimension in space)


def at(config: TrialConfig, space: Space, cell: Cell) -> TrialConfig:
    """The config with the cell's choices in place of its own."""
    choices = {dimension.key: dimension.values[index] for dimension, index in zip(space, cell, strict=True)}
    return TrialConfig.model_validate(with_values(config.model_dump(mode="json"), choices))
