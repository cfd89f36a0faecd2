"""Heat maps of metrics over two config values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from orchestrator.analysis import GridNumbers, rows, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Table
from orchestrator.report.heat_map import HeatMap
from orchestrator.report.sections.section import Section
from orchestrator.words import counted, listed

if TYPE_CHECKING:
    import pandas as pd


def grid_section(numbers: GridNumbers) -> Section:
    """Return the section of a GridMap request."""
    request = numbers.request
    row, column = formats.title(request.row), formats.title(request.column)
    names = listed([formats.title(metric) for metric in request.metrics])
    by_metric = numbers.cells.groupby("metric", sort=False)
    grids = [(str(metric), cells) for metric, cells in by_metric]
    return Section(
        kind=f"grid-{row}-{column}".replace(" ", "-"),
        heading=f"{formats.capital(names)} over {row} and {column}",
        tables=tuple(_file(numbers, metric, cells) for metric, cells in grids),
        drawings=tuple(_drawings(numbers, grids)),
        wide=False,
    )


def _name(numbers: GridNumbers, metric: str) -> str:
    row, column = (
        path.rpartition(".")[2] for path in (numbers.request.row, numbers.request.column)
    )
    return f"{metric}_over_{row}_{column}"


def _means(cells: pd.DataFrame) -> str:
    done, settings = cells["done"][cells["value"].notna()], max(cells["settings"])
    if max(done, default=1) == 1:
        return ""
    mixed = f" of up to {counted(settings, 'setting')}" if settings > 1 else ""
    return f", each cell the mean of {formats.bounds(min(done), max(done))} trials{mixed}"


def _file(numbers: GridNumbers, metric: str, cells: pd.DataFrame) -> Table:
    corner = f"{numbers.request.row} \\ {numbers.request.column}"
    matrix = tidy(
        {corner: row} | dict(zip(of_row["column"], of_row["value"], strict=True))
        for row, of_row in cells.groupby("row", sort=False)
    )
    return Table(frame=matrix, file=f"{_name(numbers, metric)}.csv")


def _drawings(numbers: GridNumbers, grids: list[tuple[str, pd.DataFrame]]) -> Iterator[HeatMap]:
    row, column = formats.title(numbers.request.row), formats.title(numbers.request.column)
    for metric, cells in grids:
        if cells["value"].isna().all():
            continue
        title = formats.heading(metric)
        marks = tidy(
            {
                "row": formats.setting(cell.row),
                "column": formats.setting(cell.column),
                "value": cell.value,
                "text": _text(cell),
                "name": _under_pointer(cell, row, column),
            }
            for cell in rows(cells)
        )
        yield HeatMap(
            name=_name(numbers, metric),
            caption=f"{title} over {row} and {column}{_means(cells)}.",
            cells=marks,
            title=title,
            x=column,
            y=row,
        )


def _under_pointer(cell: Any, row: str, column: str) -> str:
    name = f"{row} {formats.setting(cell.row)}, {column} {formats.setting(cell.column)}"
    state = f": {_text(cell)}" if cell.value is None and cell.trials else ""
    return formats.described(name + state, {cell.metric: cell.value}, trials=cell.done)


def _text(cell: Any) -> str:
    if cell.value is not None:
        return formats.cell(cell.metric, cell.value)
    return {"none": "", "done": "no value"}.get(cell.state, str(cell.state))
