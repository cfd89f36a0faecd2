"""Plan of a tuned study before any results. A side is a config that the study tunes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from orchestrator.plan.request import PlanRequest, Search
from orchestrator.store import PlannedTrial, Position
from orchestrator.words import one_line
from search_spaces.tuning import (
    Cell,
    Dimension,
    Space,
    Tuning,
    cell_count,
    cell_text,
    cells,
    choices,
)
from trainables.config import AnyConfig, read_config, value_at
from trainables.errors import UserError

BUDGETS = {"smoke": 3, "quick": 6, "small": 30, "paper": 60}
"""Number of search trials (stage 2) per side, by scale."""
SMOKE_SEEDS = 2


@dataclass(frozen=True, kw_only=True)
class TuningPlan:
    """The trials that each side of a tuned study may run in each stage."""

    tuning: Tuning
    bases: Mapping[str, AnyConfig]
    """Untuned config of each side, at scale paper."""
    resolve: Callable[[AnyConfig], AnyConfig]
    """Function that applies scale and `--set` to a config at paper scale."""
    search: Search
    budget: int
    smoke: bool

    @property
    def stage1_cells(self) -> tuple[Cell, ...]:
        """Combinations of values that stage 1 trains."""
        first, *other_cells = cells(self.tuning.stage1)
        return (first, *(other_cells[-1:] if self.smoke else other_cells))

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of each side's final trials."""
        return self.tuning.seeds[:SMOKE_SEEDS] if self.smoke else self.tuning.seeds

    @property
    def total(self) -> int:
        """Return the number of trials if no side fails, including the final trials."""
        return len(self.bases) * (len(self.stage1_cells) + self.budget + len(self.seeds))

    @property
    def cell_total(self) -> int:
        """Number of cells of stage 2 for each side, without those that stage 1 trains."""
        side = next(iter(self.bases))
        configs = (self._config(side, self.tuning.stage1, cell) for cell in self.stage1_cells)
        contents = (config.model_dump(mode="json") for config in configs)
        repeats = sum(self.searched_cell(side, content) is not None for content in contents)
        return cell_count(self.tuning.stage2) - repeats

    def certain(self) -> Iterator[PlannedTrial]:
        """Yield each trial that needs no earlier result."""
        trained_ids = set[str]()
        for side in self.bases:
            for cell in self.stage1_cells:
                trial = self._trial(Position(side=side, stage="stage1"), cell)
                trained_ids.add(trial.trial_id)
                yield trial
        for number, cell in enumerate(
            cells(self.tuning.stage2) if self.search == "grid" else (), start=1
        ):
            for side in self.bases:
                trial = self.searched(side, number, cell)
                if trial.trial_id not in trained_ids:
                    yield trial

    def searched(self, side: str, number: int, cell: Cell) -> PlannedTrial:
        """Return trial `number` of a side's search (stage 2)."""
        return self._trial(Position(side=side, stage="stage2", number=number), cell)

    def final(self, side: str, best_config: Mapping[str, Any]) -> list[PlannedTrial]:
        """Return a side's final trials: `best_config` (JSON data) with each final seed."""
        position = Position(side=side, stage="final")
        configs = [read_config({**best_config, "seed": seed}) for seed in self.seeds]
        return [_planned(config, position, f"seed={config.seed}") for config in configs]

    def searched_cell(self, side: str, config: Mapping[str, Any]) -> Cell | None:
        """Return the cell of stage 2 that has this config; None if no cell has it."""
        space = self.tuning.stage2
        cell: Cell = ()
        try:
            for number, (values, one) in enumerate(zip(self._choices[side], space, strict=True)):
                is_active = one.is_active(choices(space[:number], cell))
                cell += (values.index(value_at(config, one.key)) if is_active else 0,)
        except ValueError:
            return None
        resolved = self._config(side, space, cell).model_dump(mode="json")
        return cell if resolved == config else None

    def refuse_fixed_dimensions(self, keys: Collection[str]) -> None:
        """Raise UserError if `--set` fixes a tuned key, or if two of its values are equal."""
        for side, space in itertools.product(self.bases, (self.tuning.stage1, self.tuning.stage2)):
            for dimension, values in zip(space, self._resolved_choices(side, space), strict=True):
                if dimension.key in keys or len(set(map(repr, values))) < len(values):
                    raise UserError(
                        f"{dimension.key}: this study tunes it over "
                        f"{', '.join(map(str, dimension.values))}, and needs them different. Do "
                        "not fix it by --set or a scale."
                    )

    def _trial(self, position: Position, cell: Cell) -> PlannedTrial:
        space = self.tuning.stage1 if position.stage == "stage1" else self.tuning.stage2
        config = self._config(position.side, space, cell)
        return _planned(config, position, cell_text(space, config))

    def _config(self, side: str, space: Space, cell: Cell) -> AnyConfig:
        return self.resolve(self.bases[side].with_values(choices(space, cell)))

    @cached_property
    def _choices(self) -> dict[str, list[list[Any]]]:
        return {side: self._resolved_choices(side, self.tuning.stage2) for side in self.bases}

    def _resolved_choices(self, side: str, space: Space) -> list[list[Any]]:
        # The conditions hold, and other dimensions are at their first choice.
        first = choices(space, (0,) * len(space))

        def resolved(dimension: Dimension, value: Any) -> Any:
            conditions = {key: value for key, value, _ in dimension.when}
            values = {**first, **conditions, dimension.key: value}
            config = self.resolve(self.bases[side].with_values(values))
            return value_at(config.model_dump(mode="json"), dimension.key)

        return [[resolved(one, value) for value in one.values] for one in space]


def plan_tuning(
    tuning: Tuning,
    bases: Mapping[str, AnyConfig],
    scale: str,
    resolve: Callable[[AnyConfig], AnyConfig],
    request: PlanRequest,
) -> TuningPlan:
    """Return a tuning's plan. Raises UserError for a wrong budget or a `--set` of a tuned value."""
    search, budget = request.search or tuning.method, request.budget
    plan = TuningPlan(
        tuning=tuning,
        bases=bases,
        resolve=resolve,
        search=search,
        budget=0,
        smoke=scale == "smoke",
    )
    plan.refuse_fixed_dimensions(request.settings)
    cell_total = plan.cell_total
    if search == "grid" and budget is not None:
        raise UserError(
            f"--search grid: trains all {cell_total:,} cells per side. Omit --search or --budget."
        )
    if budget is not None and not 1 <= budget <= cell_total:
        raise UserError(f"--budget: takes 1 to {cell_total:,} trials per side; got {budget}.")
    if search == "grid":
        budget = cell_total
    by_scale = min(filter(None, (tuning.budget, BUDGETS.get(scale))))
    return replace(plan, budget=min(cell_total, budget or by_scale))


def _planned(config: AnyConfig, position: Position, text: str) -> PlannedTrial:
    number = "" if position.number is None else f" #{position.number}"
    name = one_line(f"{position.side} {position.stage}{number} {text}")
    return PlannedTrial.of(config, name, position)
