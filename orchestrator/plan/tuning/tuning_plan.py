"""Plan of a tuned study before any results. A side is a config that the study tunes."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from orchestrator.plan.request import DEFAULT_SEARCH, PlanRequest, Search
from orchestrator.store import PlannedTrial, Position
from search_spaces.tuning import Cell, Space, Tuning, cell_count, cell_text, cells, with_cell
from trainables.config import TrialConfig, value_at
from trainables.errors import UserError

BUDGETS = {"smoke": 3, "quick": 6, "small": 30, "paper": 60}
"""Number of search trials (stage 2) per side, by scale."""
SMOKE_SEEDS = 2


@dataclass(frozen=True, kw_only=True)
class TuningPlan:
    """The trials that each side of a tuned study may run in each stage."""

    tuning: Tuning
    bases: Mapping[str, TrialConfig]
    """Untuned config of each side, at scale paper."""
    resolve: Callable[[TrialConfig], TrialConfig]
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

    def certain(self) -> Iterator[tuple[str, TrialConfig, Position]]:
        """Yield name, config and position of each trial that needs no earlier result."""
        for side in self.bases:
            for cell in self.stage1_cells:
                yield self._named(Position(side=side, stage="stage1"), cell)
        for number, cell in enumerate(
            cells(self.tuning.stage2) if self.search == "grid" else (), start=1
        ):
            for side in self.bases:
                yield self._named(Position(side=side, stage="stage2", number=number), cell)

    def searched(self, side: str, number: int, cell: Cell) -> PlannedTrial:
        """Return trial `number` of a side's search (stage 2)."""
        name, config, position = self._named(
            Position(side=side, stage="stage2", number=number), cell
        )
        return PlannedTrial.of(config, name, position)

    def final(self, side: str, best_config: Mapping[str, Any]) -> list[PlannedTrial]:
        """Return a side's final trials: `best_config` (JSON data) with each final seed."""
        position = Position(side=side, stage="final")
        configs = [TrialConfig.model_validate({**best_config, "seed": seed}) for seed in self.seeds]
        return [
            PlannedTrial.of(config, _name(position, f"seed={config.seed}"), position)
            for config in configs
        ]

    def searched_cell(self, side: str, config: Mapping[str, Any]) -> Cell | None:
        """Return the cell of stage 2 that has this config; None if no cell has it."""
        space = self.tuning.stage2
        pairs = zip(self._choices[side], space, strict=True)
        try:
            cell = tuple(choices.index(value_at(config, one.key)) for choices, one in pairs)
        except ValueError:
            return None
        resolved = self._config(side, space, cell).model_dump(mode="json")
        return cell if resolved == config else None

    def refuse_fixed_dimensions(self, keys: Collection[str]) -> None:
        """Raise UserError if `--set` fixes a tuned key, or makes two of its values equal."""
        for side, space in itertools.product(self.bases, (self.tuning.stage1, self.tuning.stage2)):
            for dimension, choices in zip(space, self._resolved_choices(side, space), strict=True):
                if dimension.key in keys or len(set(choices)) < len(choices):
                    raise UserError(
                        f"--set: cannot fix {dimension.key!r}, which this study tunes over "
                        f"{', '.join(f'{value:g}' for value in dimension.values)}. Leave it out."
                    )

    def _named(self, position: Position, cell: Cell) -> tuple[str, TrialConfig, Position]:
        space = self.tuning.stage1 if position.stage == "stage1" else self.tuning.stage2
        config = self._config(position.side, space, cell)
        return _name(position, cell_text(space, config)), config, position

    def _config(self, side: str, space: Space, cell: Cell) -> TrialConfig:
        return self.resolve(with_cell(self.bases[side], space, cell))

    @cached_property
    def _choices(self) -> dict[str, list[list[Any]]]:
        return {side: self._resolved_choices(side, self.tuning.stage2) for side in self.bases}

    def _resolved_choices(self, side: str, space: Space) -> list[list[Any]]:
        # The other dimensions are at their first choice.
        def value(axis: int, choice: int) -> Any:
            cell = tuple(choice if other == axis else 0 for other in range(len(space)))
            content = self._config(side, space, cell).model_dump(mode="json")
            return value_at(content, space[axis].key)

        return [
            [value(axis, choice) for choice in range(len(dimension.values))]
            for axis, dimension in enumerate(space)
        ]


def plan_tuning(
    tuning: Tuning,
    bases: Mapping[str, TrialConfig],
    scale: str,
    resolve: Callable[[TrialConfig], TrialConfig],
    request: PlanRequest,
) -> TuningPlan:
    """Return a tuning's plan. Raises UserError for a wrong budget or a `--set` of a tuned value."""
    search, budget, cell_total = request.search, request.budget, cell_count(tuning.stage2)
    if search == "grid" and budget is not None:
        raise UserError(
            f"--search grid: trains all {cell_total:,} cells per side. Omit --search or --budget."
        )
    if budget is not None and not 1 <= budget <= cell_total:
        raise UserError(f"--budget: takes 1 to {cell_total:,} trials per side; got {budget}.")
    plan = TuningPlan(
        tuning=tuning,
        bases=bases,
        resolve=resolve,
        search=search or DEFAULT_SEARCH,
        budget=cell_total if search == "grid" else min(cell_total, budget or BUDGETS[scale]),
        smoke=scale == "smoke",
    )
    plan.refuse_fixed_dimensions(request.settings)
    return plan


def _name(position: Position, text: str) -> str:
    number = "" if position.number is None else f" #{position.number}"
    return f"{position.side} {position.stage}{number} {text}"
