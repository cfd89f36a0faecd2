"""Columns of numbers: declared once, written the same on pages, on the terminal and in files.

A `Table` is a frame of an analysis and what is shown of it. A key that `COLUMNS` does not have is a
setting or a metric of trials: `formats` names and writes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.analysis import HIGH, LOW, rows, tidy
from orchestrator.report import formats
from orchestrator.report.tables import Cell, TextTable, headed_table, sortable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Column:
    """How a column of a frame is headed and written."""

    heading: str
    write: Callable[[Any], str] = formats.number
    interval: bool = False
    """Whether the ends of a 95% interval are written behind the value."""
    cell: Callable[[Any], Cell | str] | None = None
    """Makes the cell of a row, if it takes more than one value; else the column's value is
    written."""


THREE = formats.digits(3)
COLUMNS: Mapping[str, Column] = {
    "panel": Column("model", formats.setting),
    "group": Column("model", formats.setting),
    "E": Column("E", THREE, interval=True),
    "b": Column("b", THREE, interval=True),
    "log_a": Column("log a", THREE, interval=True),
    "n": Column("trials", formats.number),
    "mean_loss": Column("loss", formats.digits(4)),
    "ratio": Column("ratio", THREE, interval=True),
    "difference": Column("difference", THREE, interval=True),
    "predicted": Column("predicted", formats.digits(4), interval=True),
    "detectable": Column("detectable", formats.digits(2)),
    "extrapolated": Column("outside what was trained", formats.yes_no),
    "p": Column("p", formats.p_value),
    "holm_p": Column("Holm p", formats.p_value),
    "welch_p": Column("Welch p", formats.p_value),
    "bonferroni_p": Column("Bonferroni p", formats.p_value),
    "misfit_p": Column("misfit p", formats.p_value),
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A frame, shown as a table and written to a file."""

    frame: pd.DataFrame
    caption: str = ""
    shown: Sequence[str | tuple[str, Column]] = ()
    """Keys of the columns that pages and the terminal show, in order; a column may come with its
    key if this table heads or writes it in its own way."""
    file: str = ""
    """CSV file with every column and digit; empty for none."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Setting or metric that a column of the frame is about, which also heads it in the file."""
    folded: bool = False
    """Whether a page shows only the caption until it is clicked."""

    def text(self) -> TextTable:
        """Return what a page and the terminal show."""
        columns = [
            key if isinstance(key, tuple) else (key, self._column(key)) for key in self.shown
        ]
        body = ([_cell(row, key, column) for key, column in columns] for row in rows(self.frame))
        head = [column.heading + " [95%]" * column.interval for _, column in columns]
        return headed_table(self.caption, head, body, folded=self.folded)

    def lines(self) -> list[list[Any]]:
        """Return the lines of the file, its heading first."""
        head = [self.names.get(key, key) for key in self.frame.columns]
        return [head, *map(list, self.frame.itertuples(index=False, name=None))]

    def _column(self, key: str) -> Column:
        if key in self.names:
            name = self.names[key]
            return Column(formats.title(name), partial(formats.cell, name))
        return COLUMNS.get(key) or Column(formats.title(key), partial(formats.cell, key))


def estimate(row: Any, key: str, write: Callable[[Any], str] = THREE) -> str:
    """Return an estimate of a row with its interval: "1.94 [1.52, 2.41]"."""
    value, low, high = (getattr(row, key + end, None) for end in ("", LOW, HIGH))
    return write(value) if low is None else f"{write(value)} [{write(low)}, {write(high)}]"


def pivot(
    points: pd.DataFrame, *, index: Sequence[str], across: str, cell: Callable[[Any], Cell]
) -> tuple[pd.DataFrame, list[tuple[str, Column]]]:
    """Return a frame with a row for each value of `index` and a column of cells for each value of
    the number `across`, and these columns, for a table that shows them."""
    headings = {x: f"{x:g}" for x in sorted(set(points[across]))}
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows(points):
        key = tuple(getattr(row, name) for name in index)
        named = cells.setdefault(key, dict.fromkeys(headings.values(), Cell(formats.DASH)))
        named[headings[getattr(row, across)]] = cell(row)
    frame = tidy(dict(zip(index, key, strict=True)) | named for key, named in cells.items())
    return frame, [(name, Column(name)) for name in headings.values()]


def _cell(row: Any, key: str, column: Column) -> Cell | str:
    if column.cell:
        return column.cell(row)
    value = getattr(row, key)
    if isinstance(value, Cell):
        return value
    text = estimate(row, key, column.write) if column.interval else column.write(value)
    return sortable(value, text)
