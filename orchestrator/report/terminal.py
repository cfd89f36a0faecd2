"""The summary of a study for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.analysis.grid import Grid, GridCell
from orchestrator.analysis.summary import StudySummaryNumbers
from orchestrator.report import formats, sentences
from orchestrator.report.tables import TextTable, correlations_table, trouble_table

SHORT = {"press_rank": "rank", "test_perplexity": "ppl"}


def summary_group(summary: StudySummaryNumbers) -> Group:
    """The grid, the correlations beside the published ones, and the trials without a result."""
    return Group(*_parts(summary))


def _parts(summary: StudySummaryNumbers) -> Iterator[RenderableType]:
    for grids in _same_axes(summary.grids):
        yield grid_table(grids)
    if summary.correlations:
        yield rich_table(correlations_table(summary))
        yield Text("\n".join(sentences.comparisons(summary)))
    if summary.trouble:
        yield rich_table(trouble_table(summary))
    yield Text(sentences.coverage(summary))


def grid_table(grids: tuple[Grid, ...]) -> Table:
    """Metrics over the same two config values in one table, each cell "rank / perplexity"."""
    first = grids[0]
    units = " / ".join(SHORT.get(grid.metric, formats.title(grid.metric)) for grid in grids)
    row, column = formats.title(first.row), formats.title(first.column)
    table = Table(title=f"{units} over {row} (down) and {column} (across)", title_justify="left")
    table.add_column(f"{row} \\ {column}", justify="right", style="bold")
    for value in first.columns:
        table.add_column(Text(formats.setting(value)), justify="right", no_wrap=True)
    for i, value in enumerate(first.rows):
        cells = zip(*(grid.cells[i] for grid in grids), strict=True)
        table.add_row(Text(formats.setting(value)), *(_grid_cell(grids, cell) for cell in cells))
    return table


def rich_table(table: TextTable) -> Table:
    """Any of the report's tables; texts are shown as they are, whatever brackets they hold."""
    shown = Table(title=Text(table.caption), title_justify="left")
    for i, name in enumerate(table.head):
        numeric = any(row[i].number is not None for row in table.body)
        shown.add_column(Text(name), justify="right" if numeric else "left", no_wrap=name == "trial")
    for row in table.body:
        shown.add_row(*(Text(cell.text, style="bold red" if cell.kind == "bad" else "") for cell in row))
    return shown


def _same_axes(grids: tuple[Grid, ...]) -> list[tuple[Grid, ...]]:
    groups: dict[tuple[str, str], list[Grid]] = {}
    for grid in grids:
        groups.setdefault((grid.row, grid.column), []).append(grid)
    return [tuple(group) for group in groups.values()]


def _grid_cell(grids: tuple[Grid, ...], cells: tuple[GridCell, ...]) -> Text:
    if all(cell.value is None for cell in cells):
        state = cells[0].state
        return Text("" if state == "none" else state, style="bold red" if state in ("failed", "diverged") else "dim")
    return Text(" / ".join(formats.cell(grid.metric, cell.value) for grid, cell in zip(grids, cells, strict=True)))
