"""Metrics over two config values: heat maps on the page, tables on the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from matplotlib.figure import Figure

from orchestrator.analysis import Grid, GridCell
from orchestrator.report import formats
from orchestrator.report.figures import Drawing, draw_cells, new_figure
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, sortable, text_table
from orchestrator.store import LOST
from orchestrator.words import counted, listed


def grid_section(grids: Sequence[Grid]) -> Section:
    """The heat maps and the table of a GridMap request; `grids` are of the same two config
    values."""
    row, column = formats.title(grids[0].row), formats.title(grids[0].column)
    names = listed([formats.title(grid.metric) for grid in grids])
    return Section(
        kind=f"grid-{row}-{column}".replace(" ", "-"),
        heading=f"{formats.capital(names)} over {row} and {column}",
        terminal=tuple(map(grid_table, grids)),
        files={f"{grid.name}.csv": _csv(grid) for grid in grids},
        drawings=tuple(
            Drawing(name=grid.name, caption=_caption(grid), draw=partial(heat_map, grid))
            for grid in grids
            if grid.values
        ),
        wide=False,
    )


def _caption(grid: Grid) -> str:
    over = f"{formats.title(grid.row)} and {formats.title(grid.column)}"
    return f"{formats.capital(formats.title(grid.metric))} over {over}{_means(grid)}."


def _means(grid: Grid) -> str:
    """What a value is the mean of, where it is one."""
    least, most = grid.repeats
    mixed = f" of up to {counted(grid.mixed, 'setting')}" if grid.mixed > 1 else ""
    return f", each the mean of {formats.bounds(least, most)} trials{mixed}" if most > 1 else ""


def _csv(grid: Grid) -> list[list[object]]:
    rows = (
        [value, *(cell.value for cell in row)]
        for value, row in zip(grid.rows, grid.cells, strict=True)
    )
    return [[f"{grid.row} \\ {grid.column}", *grid.columns], *rows]


def grid_table(grid: Grid) -> TextTable:
    """A metric over two config values, or the state of what has no value."""
    row, column = formats.title(grid.row), formats.title(grid.column)
    rows = []
    for value, cells in zip(grid.rows, grid.cells, strict=True):
        label = replace(sortable(value, formats.setting(value)), kind="label")
        across = zip(map(formats.setting, grid.columns), cells, strict=True)
        rows.append(
            {
                f"{row} \\ {column}": label,
                **{name: _table_cell(grid.metric, cell) for name, cell in across},
            }
        )
    caption = f"{formats.capital(formats.title(grid.metric))} over {row} (down) and {column} (across){_means(grid)}"
    return text_table(caption, rows)


def _table_cell(metric: str, cell: GridCell) -> Cell:
    if cell.value is None:
        return Cell(
            "" if cell.state == "none" else cell.state,
            kind="bad" if cell.state in LOST else "waiting",
        )
    return Cell(formats.cell(metric, cell.value), cell.value)


def heat_map(grid: Grid) -> Figure:
    """A metric over two config values, the number in each cell; cells without one are hatched and
    say their state."""
    height_in = max(2.2, 1.2 + 0.34 * len(grid.rows))
    figure, axes = new_figure(
        width_in=max(4.2, 1.2 + 0.62 * len(grid.columns)), height_in=height_in
    )
    draw_cells(
        axes,
        [[math.nan if cell.value is None else cell.value for cell in row] for row in grid.cells],
        [[_text(grid.metric, cell) for cell in row] for row in grid.cells],
        columns=list(map(formats.setting, grid.columns)),
        rows=list(map(formats.setting, grid.rows)),
        limits=(min(grid.values), max(grid.values)),
        names=[
            [
                _name(grid, row, column, cell)
                for column, cell in zip(grid.columns, cells, strict=True)
            ]
            for row, cells in zip(grid.rows, grid.cells, strict=True)
        ],
        trial_ids=[[cell.trial_id for cell in row] for row in grid.cells],
    )
    axes.set_xlabel(formats.title(grid.column))
    axes.set_ylabel(formats.title(grid.row))
    axes.set_title(formats.capital(formats.title(grid.metric)), fontsize=11)
    return figure


def _name(grid: Grid, row: Any, column: Any, cell: GridCell) -> str:
    place = f"{formats.title(grid.row)} {formats.setting(row)}, {formats.title(grid.column)} {formats.setting(column)}"
    state = f": {_text(grid.metric, cell)}" if cell.value is None and cell.trials else ""
    return formats.described(place + state, {grid.metric: cell.value}, trials=cell.done)


def _text(metric: str, cell: GridCell) -> str:
    if cell.value is not None:
        return formats.cell(metric, cell.value)
    return {"none": "", "done": "no value"}.get(cell.state, cell.state)
