"""The summary of a study for the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.report.layout import column_widths, split
from orchestrator.report.tables import TextTable, trouble_table

if TYPE_CHECKING:
    from orchestrator.report.build import ReportResult

STYLES = {"bad": "bold red", "label": "bold", "waiting": "dim"}


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """A table, or where it is wider than the console, several tables of the same; all of them whole at any width."""

    table: TextTable

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        width = options.max_width
        fits = column_widths(self.table, width) is not None
        for table in (self.table,) if fits or not self.table.narrower else self.table.narrower:
            for part in split(table, width):
                yield _rich_table(part, column_widths(part, width))


def summary_group(report: ReportResult) -> Group:
    """What the report's sections show on a terminal, and the trials without a result."""
    from orchestrator.report import sentences

    parts: list[RenderableType] = []
    for answer in report.answers:
        for part in answer.section.for_terminal:
            parts.append(Text(part) if isinstance(part, str) else Fitting(table=part))
    if report.summary.trouble:
        parts.append(Fitting(table=trouble_table(report.summary)))
    return Group(*parts, Text(sentences.coverage(report.summary)))


def _rich_table(table: TextTable, widths: Sequence[int] | None) -> Table:
    """Texts are shown as they are, whatever brackets they hold; what is too long folds."""
    rich_table = Table(title=Text(table.caption), title_justify="left")
    for i, name in enumerate(table.head):
        numeric = any(row[i].number is not None for row in table.body)
        rich_table.add_column(
            Text(name),
            justify="right" if numeric else "left",
            overflow="fold",
            width=widths[i] if widths else None,
        )
    for row in table.body:
        rich_table.add_row(*(Text(cell.text, style=STYLES.get(cell.kind, "")) for cell in row))
    return rich_table
