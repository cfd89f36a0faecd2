"""A metric laid out over two config values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from orchestrator.analysis.values import values_of_done
from orchestrator.store import LOST, TrialState

if TYPE_CHECKING:
    import pandas as pd

BAD_STATES: tuple[TrialState, ...] = (*LOST, "pruned", "running", "planned")
"""What a cell of several trials is, the worst first."""


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """The trials at one pair of config values."""

    value: float | None
    """Mean of the metric over the cell's done trials; None where there is none."""
    state: str
    """ "done" where every trial of the cell is, "none" where the study has no such trial, else the
    worst state."""
    trials: int
    done: int = 0
    """How many of them the mean is over."""
    settings: int = 0
    """How many settings these have: more than one where more than the two config values and the
    seed differ."""
    trial_id: str = ""
    """Of the cell's only trial."""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """`cells[i][j]` belongs to `rows[i]` and `columns[j]`, both ascending."""

    row: str
    column: str
    metric: str
    rows: tuple[Any, ...]
    columns: tuple[Any, ...]
    cells: tuple[tuple[GridCell, ...], ...]

    @property
    def name(self) -> str:
        """For files and figures: "press_rank_over_c_k"."""
        row, column = (path.rpartition(".")[2] for path in (self.row, self.column))
        return f"{self.metric}_over_{row}_{column}"

    @property
    def values(self) -> tuple[float, ...]:
        """Every value there is."""
        return tuple(cell.value for row in self.cells for cell in row if cell.value is not None)

    @property
    def repeats(self) -> tuple[int, int]:
        """The least and the most trials that a value is the mean of; (1, 1) without a value."""
        counts = [cell.done for row in self.cells for cell in row if cell.value is not None]
        return min(counts, default=1), max(counts, default=1)

    @property
    def mixed(self) -> int:
        """How many settings a value is the mean over, at most."""
        return max((cell.settings for row in self.cells for cell in row), default=0)


def lay_out(frame: pd.DataFrame, *, row: str, column: str, metric: str) -> Grid:
    """Arrange `metric` over the config columns `row` and `column`; trials that lack one of the two
    are left out."""
    cells = {place: _cell(trials, metric) for place, trials in frame.groupby([row, column])}
    rows, columns = (
        tuple(
            sorted(
                {place[axis] for place in cells}, key=lambda value: (isinstance(value, str), value)
            )
        )
        for axis in (0, 1)
    )
    none = GridCell(value=None, state="none", trials=0)
    return Grid(
        row=row,
        column=column,
        metric=metric,
        rows=rows,
        columns=columns,
        cells=tuple(tuple(cells.get((i, j), none) for j in columns) for i in rows),
    )


def _cell(trials: pd.DataFrame, metric: str) -> GridCell:
    states = set(trials["state"])
    measured = list(values_of_done(trials, metric, "setting"))
    values = [value for _, value in measured]
    return GridCell(
        value=math.fsum(values) / len(values) if values else None,
        state=next((state for state in BAD_STATES if state in states), "done"),
        trials=len(trials),
        done=len(values),
        settings=len({setting for setting, _ in measured}),
        trial_id=trials["trial_id"].iloc[0] if len(trials) == 1 else "",
    )
