"""Heat maps of metrics over two config values."""

from __future__ import annotations

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
    ends = "_".join(path.rpartition(".")[2] for path in (request.row, request.column))
    tables, drawings = [], []
    for metric, cells in numbers.cells.groupby("metric", sort=False):
        name, title = f"{metric}_over_{ends}", formats.heading(str(metric))
        corner = f"{request.row} \\ {request.column}"
        tables.append(Table(frame=_matrix(cells, corner), file=f"{name}.csv"))
        if cells["value"].notna().any():
            heat_map = HeatMap(
                name=name,
                caption=f"{title} over {row} and {column}{_means(cells)}.",
                cells=_marks(cells, row, column),
                title=title,
                x=column,
                y=row,
            )
            drawings.append(heat_map)
    names = listed([formats.title(metric) for metric in request.metrics])
    return Section(
        kind=f"grid-{row}-{column}".replace(" ", "-"),
        heading=f"{formats.capital(names)} over {row} and {column}",
        tables=tuple(tables),
        drawings=tuple(drawings),
        wide=False,
    )


def _means(cells: pd.DataFrame) -> str:
    done, settings = cells["done"][cells["value"].notna()], max(cells["settings"])
    if max(done, default=1) == 1:
        return ""
    mixed = f" of up to {counted(settings, 'setting')}" if settings > 1 else ""
    return f", each cell the mean of {formats.bounds(min(done), max(done))} trials{mixed}"


def _matrix(cells: pd.DataFrame, corner: str) -> pd.DataFrame:
    return tidy(
        {corner: row} | dict(zip(of_row["column"], of_row["value"], strict=True))
        for row, of_row in cells.groupby("row", sort=False)
    )


def _marks(cells: pd.DataFrame, row: str, column: str) -> pd.DataFrame:
    return tidy(
        {
            "row": formats.setting(cell.row),
            "column": formats.setting(cell.column),
            "value": cell.value,
            "text": _text(cell),
            "name": _under_pointer(cell, row, column),
        }
        for cell in rows(cells)
    )


def _under_pointer(cell: Any, row: str, column: str) -> str:
    name = f"{row} {formats.setting(cell.row)}, {column} {formats.setting(cell.column)}"
    state = f": {_text(cell)}" if cell.value is None and cell.trials else ""
    return formats.described(name + state, {cell.metric: cell.value}, trials=cell.done)


def _text(cell: Any) -> str:
    if cell.value is not None:
        return formats.cell(cell.metric, cell.value)
    return {"none": "", "done": "no value"}.get(cell.state, str(cell.state))
