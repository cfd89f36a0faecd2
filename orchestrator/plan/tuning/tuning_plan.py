"""A tuning at one scale, on one corpus, with one method and budget: everything but results."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchestrator.plan.request import DEFAULT_SEARCH, PlanRequest, Search
from orchestrator.store import Place, PlannedTrial
from search_spaces.tuning import Cell, Space, Tuning, cell_count, cell_text, cells, with_cell
from trainables.config import TrialConfig, value_at
from trainables.errors import UserError

BUDGETS = {"smoke": 3, "quick": 6, "small": 30, "paper": 60}
"""Trials of stage 2 for each side, by scale."""
SMOKE_SEEDS = 2
"""Final trials a side at scale smoke, which also trains just the first and the last cell of stage
1."""


@dataclass(frozen=True, kw_only=True)
class TuningPlan:
    """Which trials there are and may be, by side and stage."""

    tuning: Tuning
    bases: Mapping[str, TrialConfig]
    """Each side's config at paper scale."""
    resolve: Callable[[TrialConfig], TrialConfig]
    """From paper scale to the config that is trained."""
    search: Search
    budget: int
    """Trials of stage 2 for each side."""
    smoke: bool

    @property
    def stage1_cells(self) -> tuple[Cell, ...]:
        """Those that are trained: at scale smoke just the first and the last."""
        first, *rest = cells(self.tuning.stage1)
        return (first, *(rest[-1:] if self.smoke else rest))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Of each side's final trials."""
        return self.tuning.seeds[:SMOKE_SEEDS] if self.smoke else self.tuning.seeds

    @property
    def total(self) -> int:
        """How many trials there are in the end, where every side has a best one."""
        return len(self.bases) * (len(self.stage1_cells) + self.budget + len(self.seeds))

    def certain(self) -> Iterator[tuple[str, Place, TrialConfig]]:
        """Names, places and resolved configs of the trials that no result is needed for."""
        for side in self.bases:
            for cell in self.stage1_cells:
                yield self._named(Place(side=side, stage="stage1"), cell)
        for number, cell in enumerate(
            cells(self.tuning.stage2) if self.search == "grid" else (), start=1
        ):
            for side in self.bases:
                yield self._named(Place(side=side, stage="stage2", number=number), cell)

    def searched(self, side: str, number: int, cell: Cell) -> PlannedTrial:
        """The side's trial of stage 2 with that number."""
        name, place, config = self._named(Place(side=side, stage="stage2", number=number), cell)
        return PlannedTrial.of(config, name, place)

    def final(self, side: str, best: Mapping[str, Any]) -> list[PlannedTrial]:
        """The trials with the side's best config (as JSON data) and each final seed."""
        place = Place(side=side, stage="final")
        configs = [TrialConfig.model_validate({**best, "seed": seed}) for seed in self.seeds]
        return [
            PlannedTrial.of(config, _name(place, f"seed={config.seed}"), place)
            for config in configs
        ]

    def searched_cell(self, side: str, config: Mapping[str, Any]) -> Cell | None:
        """The cell of stage 2 that a resolved config is of; None where it is none of this
        plan's."""
        values = [value_at(config, dimension.key) for dimension in self.tuning.stage2]
        pairs = list(zip(self._choices[side], values, strict=True))
        if any(value not in choices for choices, value in pairs):
            return None
        cell = tuple(choices.index(value) for choices, value in pairs)
        return (
            cell
            if self._config(side, self.tuning.stage2, cell).model_dump(mode="json") == config
            else None
        )

    def refuse_fixed_dimensions(self, keys: Collection[str]) -> None:
        """Raise UserError where one of these keys, which `--set` gives a value, is tuned, or where
        `resolve` gives two choices of a dimension the same value."""
        for side, space in itertools.product(self.bases, (self.tuning.stage1, self.tuning.stage2)):
            for dimension, choices in zip(space, self._resolved_choices(side, space), strict=True):
                if dimension.key in keys or len(set(choices)) < len(choices):
                    raise UserError(
                        f"--set cannot fix {dimension.key!r}, which this study tunes over "
                        f"{', '.join(f'{value:g}' for value in dimension.values)}: leave that "
                        f"--set out"
                    )

    def _named(self, place: Place, cell: Cell) -> tuple[str, Place, TrialConfig]:
        space = self.tuning.stage1 if place.stage == "stage1" else self.tuning.stage2
        return _name(place, cell_text(space, cell)), place, self._config(place.side, space, cell)

    def _config(self, side: str, space: Space, cell: Cell) -> TrialConfig:
        return self.resolve(with_cell(self.bases[side], space, cell))

    @cached_property
    def _choices(self) -> dict[str, list[list[Any]]]:
        return {side: self._resolved_choices(side, self.tuning.stage2) for side in self.bases}

    def _resolved_choices(self, side: str, space: Space) -> list[list[Any]]:
        """For each dimension the values of its choices once resolved, the other dimensions at their
        first choice."""
        values: list[list[Any]] = [[] for _ in space]
        for place, dimension in enumerate(space):
            for choice in range(len(dimension.values)):
                cell = tuple(choice if position == place else 0 for position in range(len(space)))
                values[place].append(
                    value_at(self._config(side, space, cell).model_dump(mode="json"), dimension.key)
                )
        return values


def plan_tuning(
    tuning: Tuning,
    bases: Mapping[str, TrialConfig],
    scale: str,
    resolve: Callable[[TrialConfig], TrialConfig],
    request: PlanRequest,
) -> TuningPlan:
    """Return the plan that is asked for. Raises UserError for a budget that cannot be, and if
    `--set` fixes a value that is tuned."""
    search, budget, most = request.search, request.budget, cell_count(tuning.stage2)
    if search == "grid" and budget is not None:
        raise UserError(
            f"--search grid trains all {most:,} cells of each side, so it takes no --budget: leave "
            f"one out"
        )
    if budget is not None and not 1 <= budget <= most:
        raise UserError(
            f"--budget takes the trials a side of stage 2, from 1 to its {most:,} cells; got "
            f"{budget}"
        )
    plan = TuningPlan(
        tuning=tuning,
        bases=bases,
        resolve=resolve,
        search=search or DEFAULT_SEARCH,
        budget=most if search == "grid" else min(most, budget or BUDGETS[scale]),
        smoke=scale == "smoke",
    )
    plan.refuse_fixed_dimensions(request.settings)
    return plan


def _name(place: Place, text: str) -> str:
    """ "mos_dagger stage2 #7 de=0.31 dh=0.2": what a reader sees of a trial's place, and what is
    its own there."""
    number = "" if place.number is None else f" #{place.number}"
    return f"{place.side} {place.stage}{number} {text}"
