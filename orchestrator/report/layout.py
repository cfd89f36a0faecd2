"""How a table is laid out in a console of a given width, so that no number and no label is ever cut."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from orchestrator.report.tables import TextTable

WHOLE = 32
"""Cells of up to so many characters stay on one line; longer ones wrap between words."""
LEAST_TEXT = 14
"""A wrapped text has at least so many characters a line; a heading of up to so many is not wrapped."""
COLUMN_BORDER, TABLE_BORDER = 3, 1
"""A blank on both sides and a line for each column, and the last line."""


def column_widths(table: TextTable, width: int) -> list[int] | None:
    """The characters for each column where the table is at most `width` wide; None where it does not fit."""
    least = [_least_width(table, i) for i in range(len(table.head))]
    spare = width - _total(least)
    if spare < 0:
        return None
    widths = []
    for i, narrowest in enumerate(least):
        more = min(spare, _full_width(table, i) - narrowest)
        widths.append(narrowest + more)
        spare -= more
    return widths


def split(table: TextTable, width: int) -> list[TextTable]:
    """The table as one or more, each at most `width` wide: all have the first column, the others go in order.

    Where a single column beside the first one is too wide already, that table is too.
    """
    least = [_least_width(table, i) for i in range(len(table.head))]
    parts: list[list[int]] = [[0]]
    for i in range(1, len(table.head)):
        if len(parts[-1]) > 1 and _total([least[j] for j in (*parts[-1], i)]) > width:
            parts.append([0])
        parts[-1].append(i)
    return [_part(table, columns, first=n == 0) for n, columns in enumerate(parts)]


def _part(table: TextTable, columns: Sequence[int], *, first: bool) -> TextTable:
    return replace(
        table,
        caption=table.caption if first else f"{table.caption} (continued)",
        head=tuple(table.head[i] for i in columns),
        body=tuple(tuple(row[i] for i in columns) for row in table.body),
    )


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + COLUMN_BORDER * len(widths) + TABLE_BORDER


def _full_width(table: TextTable, i: int) -> int:
    return max(map(cell_len, (table.head[i], *(row[i].text for row in table.body))))


def _least_width(table: TextTable, i: int) -> int:
    head, texts = table.head[i], [row[i].text for row in table.body]
    long = [text for text in texts if cell_len(text) > WHOLE]
    whole = [cell_len(text) for text in texts if cell_len(text) <= WHOLE]
    whole += [cell_len(head)] if cell_len(head) <= LEAST_TEXT else []
    words = [min(WHOLE, cell_len(word)) for text in (head, *long) for word in text.split()]
    return max([*whole, *words, LEAST_TEXT if long else 1])
