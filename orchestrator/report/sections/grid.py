"""Metrics over two config values: a heat map each on the page, one table on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Colormap, Normalize
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from orchestrator.analysis import Grid, GridCell
from orchestrator.report import formats
from orchestrator.report.figures import COLOURS, Drawing, name_cells, new_figure
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, sortable
from orchestrator.store import LOST
from orchestrator.words import listed

SHORT = {"press_rank": "rank", "test_perplexity": "ppl"}
"""Metrics in the caption of a table that has several in a cell."""
CENTRED: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9}


def grid_section(grids: Sequence[Grid]) -> Section:
    """The heat maps and the table of a GridMap request; `grids` are of the same two config values."""
    row, column = formats.title(grids[0].row), formats.title(grids[0].column)
    names = listed([formats.title(grid.metric) for grid in grids])
    table = grid_table(grids)
    if len(grids) > 1:
        table = replace(table, narrower=tuple(grid_table((grid,)) for grid in grids))
    return Section(
        kind=f"grid-{row}-{column}".replace(" ", "-"),
        heading=f"{formats.capital(names)} over {row} and {column}",
        terminal=(table,),
        files={f"{grid.name}.csv": list(_csv(grid)) for grid in grids},
        drawings=tuple(
            Drawing(name=grid.name, caption=_caption(grid), draw=partial(heat_map, grid))
            for grid in grids
            if grid.values
        ),
        wide=False,
    )


def _caption(grid: Grid) -> str:
    over = f"{formats.title(grid.row)} and {formats.title(grid.column)}"
    several = any(cell.trials > 1 for row in grid.cells for cell in row)
    end = ", means of a cell's trials." if several else "."
    return f"{formats.capital(formats.title(grid.metric))} over {over}{end}"


def _csv(grid: Grid) -> Iterator[Sequence[Any]]:
    yield [f"{grid.row} \\ {grid.column}", *grid.columns]
    for value, row in zip(grid.rows, grid.cells, strict=True):
        yield [value, *(cell.value for cell in row)]


def grid_table(grids: Sequence[Grid]) -> TextTable:
    """Metrics over the same two config values, each cell as in "92 / 189.2", or the state of what has no value."""
    first = grids[0]
    names = [formats.title(grid.metric) for grid in grids]
    if len(grids) > 1:
        names = [SHORT.get(grid.metric, name) for grid, name in zip(grids, names, strict=True)]
    row, column = formats.title(first.row), formats.title(first.column)
    body = []
    for i, value in enumerate(first.rows):
        label = replace(sortable(value, formats.setting(value)), kind="label")
        across = zip(*(grid.cells[i] for grid in grids), strict=True)
        body.append((label, *(_table_cell(grids, cells) for cells in across)))
    return TextTable(
        caption=f"{' / '.join(names)} over {row} (down) and {column} (across)",
        head=(f"{row} \\ {column}", *(formats.setting(value) for value in first.columns)),
        body=body,
    )


def _table_cell(grids: Sequence[Grid], cells: Sequence[GridCell]) -> Cell:
    if all(cell.value is None for cell in cells):
        state = cells[0].state
        return Cell("" if state == "none" else state, kind="bad" if state in LOST else "waiting")
    text = " / ".join(formats.cell(grid.metric, cell.value) for grid, cell in zip(grids, cells, strict=True))
    return Cell(text, cells[0].value)


def heat_map(grid: Grid) -> Figure:
    """A metric over two config values, the number in each cell; cells without one are hatched and say their state."""
    height_in = max(2.2, 1.2 + 0.34 * len(grid.rows))
    figure, axes = new_figure(width_in=max(4.2, 1.2 + 0.62 * len(grid.columns)), height_in=height_in)
    values = np.array([[np.nan if cell.value is None else cell.value for cell in row] for row in grid.cells])
    low, high = min(grid.values, default=0.0), max(grid.values, default=1.0)
    norm = Normalize(low, high if high > low else low + 1)
    cmap = mpl.colormaps[COLOURS]
    axes.pcolormesh(np.ma.masked_invalid(values), cmap=cmap, norm=norm, edgecolors="white", linewidth=1)
    for i, row in enumerate(grid.cells):
        for j, cell in enumerate(row):
            if cell.value is None:
                _hatch(axes, i, j, cell.state)
                continue
            ink = _ink(cmap, norm(cell.value))
            axes.text(j + 0.5, i + 0.5, formats.cell(grid.metric, cell.value), color=ink, **CENTRED)
    name_cells(axes, list(map(formats.setting, grid.columns)), list(map(formats.setting, grid.rows)))
    axes.set_xlabel(formats.title(grid.column))
    axes.set_ylabel(formats.title(grid.row))
    axes.set_title(formats.capital(formats.title(grid.metric)), fontsize=11)
    return figure


def _hatch(axes: Axes, i: int, j: int, state: str) -> None:
    axes.add_patch(Rectangle((j, i), 1, 1, facecolor="0.93", edgecolor="0.55", hatch="///", linewidth=0))
    words = {"none": "", "done": "no value"}.get(state, state)
    box = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
    if words:
        axes.text(j + 0.5, i + 0.5, words, color="black", **(CENTRED | {"fontsize": 7.5}), bbox=box)


def _ink(cmap: Colormap, position: float) -> str:
    red, green, blue, _ = cmap(float(position))
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in (red, green, blue)]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "black" if luminance > 0.179 else "white"
