"""Headings and number formats of table columns, shared by pages and the terminal.

A column without an entry in `COLUMNS` holds a setting or metric of trials. `formats` gives its
heading and format.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from orchestrator.analysis import HIGH, LOW, rows, tidy
from orchestrator.report import formats
from orchestrator.report.tables import Cell, TextTable, sortable

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Column:
    """Heading and format of a frame's column."""

    heading: str
    write: Callable[[Any], str] = formats.number
    interval: bool = False
    """Also write the 95% interval after the value."""
    cell: Callable[[Any], Cell | str] | None = None
    """Function that makes a cell from a row. By default, `write` formats the value."""


THREE = formats.digits(3)


def with_interval(heading: str, write: Callable[[Any], str] = THREE) -> Column:
    """Return a column of estimates with their 95% intervals."""
    return Column(heading, write, interval=True)


def _correlation(heading: str) -> Column:
    return with_interval(heading, formats.coefficient)


def _p(heading: str = "p") -> Column:
    return Column(heading, formats.p_value)


def _done(row: Any) -> Cell:
    return Cell(f"{row.done}" + f" of {row.trials}" * (row.done < row.trials), row.done)


COLUMNS: Mapping[str, Column] = {
    "panel": Column("model", formats.setting),
    "group": Column("setting", formats.setting),
    "baseline": Column("against", formats.setting),
    "done": Column("trials", cell=_done),
    "n": Column("trials"),
    "epoch": Column("epoch", str),
    "E": with_interval("E"),
    "b": with_interval("b"),
    "log_a": with_interval("log a"),
    "mean_loss": Column("loss", formats.digits(4)),
    "ratio": with_interval("ratio"),
    "difference": with_interval("difference"),
    "predicted": with_interval("predicted", formats.digits(4)),
    "detectable": Column("detectable", formats.digits(2)),
    "extrapolated": Column("outside the trained sizes", formats.yes_no),
    "effect": _correlation("effect"),
    "pearson": _correlation("Pearson r"),
    "spearman": _correlation("Spearman \N{GREEK SMALL LETTER RHO}"),
    "independent": _correlation("r if cells were independent"),
    "within": _correlation("r between seeds of one cell"),
    "levels": _correlation("one effect per value: Pearson r"),
    "line": _correlation("straight-line effect: Pearson r"),
    "variance_cells": Column("deviation between cells", formats.deviation),
    "variance_seed_in_one_cell": Column("deviation by seed, one cell", formats.deviation),
    "variance_seed_in_all_cells": Column("deviation by seed, all cells", formats.deviation),
    "seed_share": with_interval("seed's share of the variance of single trials", formats.percent),
    "reliability": with_interval("cells' share of the variance of means", formats.percent),
    "p": _p(),
    "holm_p": _p("Holm p"),
    "welch_p": _p("Welch p"),
    "bonferroni_p": _p("Bonferroni p"),
    "misfit_p": _p("misfit p"),
    "difference_p": _p(),
    "pearson_p": _p(),
    "levels_p": _p(),
    "line_p": _p("p of the straight-line effect"),
}


@dataclass(frozen=True, kw_only=True)
class Table:
    """A data frame, and how it is shown as a table and written as a CSV file."""

    frame: pd.DataFrame
    caption: str = ""
    columns: Sequence[str | tuple[str, Column]] = ()
    """Columns to show, in order. A frame's column may be paired with its `Column`."""
    file: str = ""
    """CSV file with every column and digit; empty for no file."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Frame column -> the setting or metric in it, which heads the column in the CSV file."""
    folded: bool = False

    def text(self) -> TextTable:
        """Return the table for a page or the terminal."""
        columns = [
            key if isinstance(key, tuple) else (key, self._column(key)) for key in self.columns
        ]
        body = [[_cell(row, key, column) for key, column in columns] for row in rows(self.frame)]
        head = [column.heading + " [95%]" * column.interval for _, column in columns]
        return TextTable(caption=self.caption, head=head, body=body, folded=self.folded)

    def _column(self, key: str) -> Column:
        if key in self.names:
            name = self.names[key]
            return Column(formats.title(name), partial(formats.cell, name))
        return COLUMNS.get(key) or Column(formats.title(key), partial(formats.cell, key))


def whole_table(frame: pd.DataFrame, caption: str, file: str = "") -> Table:
    """Return a table with every column of the frame, even if names are equal."""
    names = {f"column {i}": str(name) for i, name in enumerate(frame)}
    return Table(
        caption=caption,
        frame=frame.set_axis(list(names), axis="columns"),
        columns=[(key, Column(name)) for key, name in names.items()],
        file=file,
        names=names,
    )


def estimate(row: Any, key: str, write: Callable[[Any], str] = THREE) -> str:
    """Return an estimate of a row with its interval: "1.94 [1.52, 2.41]"."""
    value, low, high = (getattr(row, key + end, None) for end in ("", LOW, HIGH))
    return write(value) if low is None else f"{write(value)} [{write(low)}, {write(high)}]"


def pivot(
    points: pd.DataFrame,
    *,
    index: Sequence[str],
    across: str,
    cell: Callable[[Any], Cell],
    headings: Mapping[Any, str] | None = None,
) -> tuple[pd.DataFrame, list[tuple[str, Column]]]:
    """Return a frame with one row per combination of `index` and one column per value of `across`.

    Also return these columns, as `Table.columns` needs them. `cell` makes a cell from a row of
    `points`. `headings` maps the values of `across`, in order, to headings (default: sorted
    values).
    """
    if headings is None:
        values = sorted(set(points[across]), key=lambda value: (isinstance(value, str), value))
        headings = {value: formats.setting(value) for value in values}
    names = {value: f"{across} {heading}" for value, heading in headings.items()}
    cells: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows(points):
        key = tuple(getattr(row, name) for name in index)
        of_row = cells.setdefault(key, dict.fromkeys(names.values(), Cell(formats.DASH)))
        of_row[names[getattr(row, across)]] = cell(row)
    frame = tidy(dict(zip(index, key, strict=True)) | of_row for key, of_row in cells.items())
    return frame, [(names[value], Column(heading)) for value, heading in headings.items()]


def _cell(row: Any, key: str, column: Column) -> Cell:
    value = column.cell(row) if column.cell else getattr(row, key)
    if isinstance(value, Cell):
        return value
    return sortable(
        value, estimate(row, key, column.write) if column.interval else column.write(value)
    )
