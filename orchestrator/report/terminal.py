"""Tables and summaries for a terminal of any width, on which no number and no label is ever cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.report.tables import WHOLE, TextTable, trouble_table

if TYPE_CHECKING:
    from orchestrator.report.build import ReportResult

STYLES = {"bad": "bold red", "label": "bold", "waiting": "dim"}
LEAST_TEXT = 14
"""A wrapped text has at least so many characters a line; a heading of up to so many is not
wrapped."""
COLUMN_BORDER, TABLE_BORDER = 3, 1
"""A blank on both sides and a line for each column, and the last line."""


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """A table, or where it is wider than the console, several tables of the same; all of them whole
    at any width."""

    table: TextTable

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        for part in split(self.table, options.max_width):
            if part.caption:  # as wide as the console, however narrow the table is
                yield Text(part.caption, style="table.title")
            yield _rich_table(part, column_widths(part, options.max_width))


def summary_group(report: ReportResult) -> Group:
    """What the report's sections show on a terminal, and the trials without a result."""
    from orchestrator.report import sentences

    shown = [part for answer in report.answers for part in answer.section.for_terminal]
    if report.summary.trouble:
        shown.append(trouble_table(report.summary))
    parts = (Text(part) if isinstance(part, str) else Fitting(table=part) for part in shown)
    return Group(
        *parts,
        *map(Text, sentences.names(report.summary)),
        Text(sentences.coverage(report.summary)),
    )


def column_widths(table: TextTable, width: int) -> list[int] | None:
    """The characters for each column where the table is at most `width` wide; None where it does
    not fit."""
    least = [_least_width(table, i) for i in range(len(table.head))]
    spare = width - _total(least)
    if spare < 0:
        return None
    widths = []
    for i, narrowest in enumerate(least):
        more = min(spare, max(map(cell_len, _texts(table, i))) - narrowest)
        widths.append(narrowest + more)
        spare -= more
    return widths


def split(table: TextTable, width: int) -> list[TextTable]:
    """The table as one or more, each at most `width` wide: all have the first column, the others go
    in order.

    Where a single column beside the first one is too wide already, that table is too.
    """
    least = [_least_width(table, i) for i in range(len(table.head))]
    parts: list[list[int]] = [[0] if least else []]
    for i in range(1, len(least)):
        if len(parts[-1]) > 1 and _total([least[j] for j in (*parts[-1], i)]) > width:
            parts.append([0])
        parts[-1].append(i)
    return [
        replace(
            table,
            caption=f"{table.caption} (continued)" if n else table.caption,
            head=tuple(table.head[i] for i in columns),
            body=tuple(tuple(row[i] for i in columns) for row in table.body),
        )
        for n, columns in enumerate(parts)
    ]


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + COLUMN_BORDER * len(widths) + TABLE_BORDER


def _texts(table: TextTable, i: int) -> list[str]:
    """The heading and the cells of a column."""
    return [table.head[i], *(row[i].text for row in table.body)]


def _least_width(table: TextTable, i: int) -> int:
    head, *texts = _texts(table, i)
    long = [text for text in texts if cell_len(text) > WHOLE]
    whole = [cell_len(text) for text in texts if cell_len(text) <= WHOLE]
    whole += [cell_len(head)] if cell_len(head) <= LEAST_TEXT else []
    words = [min(WHOLE, cell_len(word)) for text in (head, *long) for word in text.split()]
    return max([*whole, *words, LEAST_TEXT if long else 1])


def _rich_table(table: TextTable, widths: Sequence[int] | None) -> Table:
    """Texts are shown as they are, whatever brackets they hold; what is too long folds."""
    rich_table = Table()
    for i, name in enumerate(table.head):
        numeric = any(row[i].number is not None for row in table.body)
        justify: Literal["right", "left"] = "right" if numeric else "left"
        rich_table.add_column(
            Text(name), justify=justify, overflow="fold", width=widths[i] if widths else None
        )
    for row in table.body:
        rich_table.add_row(*(Text(cell.text, style=STYLES.get(cell.kind, "")) for cell in row))
    return rich_table
