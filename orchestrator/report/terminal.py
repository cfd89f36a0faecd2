"""The summary of a study for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.analysis.grid import Grid
from orchestrator.analysis.summary import StudySummaryNumbers
from orchestrator.report import sentences
from orchestrator.report.layout import column_widths, split
from orchestrator.report.sections import sections
from orchestrator.report.tables import TextTable, correlations_table, grid_table, trouble_table

STYLES = {"bad": "bold red", "label": "bold", "waiting": "dim"}


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """A table, or where it is wider than the console, other tables of the same; all of them whole at any width."""

    table: TextTable
    narrower: tuple[TextTable, ...] = ()
    """Shown in its place where it does not fit; without them, its columns go into several tables."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        width = options.max_width
        fits = column_widths(self.table, width) is not None
        for table in (self.table,) if fits or not self.narrower else self.narrower:
            for part in split(table, width):
                yield _rich_table(part, column_widths(part, width))


def summary_group(summary: StudySummaryNumbers) -> Group:
    """The grid, the correlations beside the published ones, and the trials without a result."""
    return Group(*_parts(summary))


def _parts(summary: StudySummaryNumbers) -> Iterator[RenderableType]:
    for grids in _same_axes(summary.grids):
        yield Fitting(table=grid_table(grids), narrower=tuple(grid_table((grid,)) for grid in grids))
    if summary.correlations:
        yield Fitting(table=correlations_table(summary))
        yield Text("\n".join(sentences.comparisons(summary)))
    for section in sections(summary):
        for table in section.tables if section.terminal_tables is None else section.terminal_tables:
            yield Fitting(table=table)
        if section.findings:
            yield Text("\n".join(section.findings))
    if summary.trouble:
        yield Fitting(table=trouble_table(summary))
    yield Text(sentences.coverage(summary))


def _rich_table(table: TextTable, widths: Sequence[int] | None) -> Table:
    """Texts are shown as they are, whatever brackets they hold; what is too long folds."""
    shown = Table(title=Text(table.caption), title_justify="left")
    for i, name in enumerate(table.head):
        numeric = any(row[i].number is not None for row in table.body)
        shown.add_column(
            Text(name),
            justify="right" if numeric else "left",
            overflow="fold",
            width=widths[i] if widths else None,
        )
    for row in table.body:
        shown.add_row(*(Text(cell.text, style=STYLES.get(cell.kind, "")) for cell in row))
    return shown


def _same_axes(grids: tuple[Grid, ...]) -> list[tuple[Grid, ...]]:
    groups: dict[tuple[str, str], list[Grid]] = {}
    for grid in grids:
        groups.setdefault((grid.row, grid.column), []).append(grid)
    return [tuple(group) for group in groups.values()]
