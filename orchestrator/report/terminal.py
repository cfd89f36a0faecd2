"""Tables and summaries for a terminal of any width, without cutting a number or label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.table import Table
from rich.text import Text

from orchestrator.report.tables import WHOLE, TextTable, trouble_table

if TYPE_CHECKING:
    from orchestrator.report.build import ReportResult

LEAST_TEXT = 14
"""Smallest width of a wrapped column, in characters. Shorter headings are not wrapped."""
ROWS_SHOWN = 10
COLUMN_BORDER, TABLE_BORDER = 3, 1
"""Characters that borders add: per column (two blanks and a line), and once per table (a line)."""


@dataclass(frozen=True, kw_only=True)
class Fitting:
    """A table that is split into several if it is wider than the console. No text is cut."""

    table: TextTable

    def __rich_console__(
        self, console: Console, options: ConsoleOptions
    ) -> Iterator[RenderableType]:
        for part in split(self.table, options.max_width):
            if part.caption:  # may be wider than the table
                yield Text(part.caption, style="table.title")
            yield _rich_table(part, column_widths(part, options.max_width))


def summary_group(report: ReportResult) -> Group:
    """Return the answer, the first table, the trials without a result, and the progress."""
    from orchestrator.report import sentences

    sections = [answer.section for answer in report.answers]
    tables = [table for section in sections for table in section.texts][:1]
    if report.summary.trouble:
        tables.append(trouble_table(report.summary))
    return Group(
        Text(sentences.answer_sentence(report.summary, sections)),
        *(Fitting(table=_first_rows(table)) for table in tables),
        Text(sentences.coverage(report.summary)),
    )


def _first_rows(table: TextTable) -> TextTable:
    if len(table.body) <= ROWS_SHOWN:
        return table
    caption = f"{table.caption} (the first {ROWS_SHOWN} of {len(table.body)}: see the report)"
    return replace(table, caption=caption, body=table.body[:ROWS_SHOWN])


def column_widths(table: TextTable, width: int) -> list[int] | None:
    """Return the widths of columns for a table at most `width` wide, or None if it does not fit."""
    columns = _columns(table)
    least = [_least_width(*texts) for texts in columns]
    spare = width - _total(least)
    if spare < 0:
        return None
    widths = []
    for texts, narrowest in zip(columns, least, strict=True):
        more = min(spare, max(map(cell_len, texts)) - narrowest)
        widths.append(narrowest + more)
        spare -= more
    return widths


def split(table: TextTable, width: int) -> list[TextTable]:
    """Return parts of the table, each at most `width` wide; each begins with the first column.

    A part with one other column may still be too wide.
    """
    least = [_least_width(*texts) for texts in _columns(table)]
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


def _columns(table: TextTable) -> list[list[str]]:
    return [[head, *(row[i].text for row in table.body)] for i, head in enumerate(table.head)]


def _least_width(head: str, *texts: str) -> int:
    long = [text for text in texts if cell_len(text) > WHOLE]
    whole = [cell_len(text) for text in texts if cell_len(text) <= WHOLE]
    whole += [cell_len(head)] if cell_len(head) <= LEAST_TEXT else []
    words = [min(WHOLE, cell_len(word)) for text in (head, *long) for word in text.split()]
    return max([*whole, *words, LEAST_TEXT if long else 1])


def _rich_table(table: TextTable, widths: Sequence[int] | None) -> Table:
    rich_table = Table()
    for i, name in enumerate(table.head):
        numeric = any(row[i].number is not None for row in table.body)
        rich_table.add_column(
            Text(name),
            justify="right" if numeric else "left",
            overflow="fold",
            width=widths[i] if widths else None,
        )
    for row in table.body:
        rich_table.add_row(
            *(Text(cell.text, style="bold red" * (cell.kind == "bad")) for cell in row)
        )
    return rich_table
