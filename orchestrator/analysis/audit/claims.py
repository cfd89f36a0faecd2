"""Claims of the papers that other printed numbers, configs or files can check.

Each row of claims.csv has the printed numbers (`cells`), the `inputs` to recompute them from, a
function of rules.py with its argument, and a verdict per outcome. `cells` and `inputs` are patterns
of cell names: "table:texts of the line:column".
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from search_spaces.published import TITLES, Row, rows

if TYPE_CHECKING:
    import pandas as pd

LABELS = ("stage", "context", "iteration")
"""Columns whose numbers only label the lines."""
NUMBER = re.compile(r"[-+]?\d+\.?\d*(e[-+]?\d+)?")
TWO_DECIMALS = re.compile("ppl|_test_|params")
"""The AAAI paper prints these columns with two decimals; the CSV files drop a final zero."""


@dataclass(frozen=True, eq=False)
class Cell:
    """Cell with numbers in a published table."""

    table: str
    line: int
    """Line in the file; the heading is line 1."""
    column: str
    row: Row
    numbers: list[float]
    printed: str


@dataclass(frozen=True)
class Claim:
    """Row of claims.csv, with the cells that it refers to."""

    row: Row
    cells: list[Cell]
    inputs: list[Cell]
    trials: Mapping[Any, Mapping[Any, Any]]

    @property
    def printed(self) -> str:
        """Return the claim's text or, if that is empty, the claim's first printed number."""
        return self.row["printed"] or self.cells[0].printed


def claims(frame: pd.DataFrame) -> Iterator[Claim]:
    """Yield every claim; `frame` has the trials that counted word pairs."""
    trials = {row.get("text"): row for row in frame.to_dict("records")}
    for row in rows("claims"):
        yield Claim(row, look_up(row["cells"]), look_up(row["inputs"]), trials)


def look_up(references: str) -> list[Cell]:
    """Return the cells that match the references, which are separated by "; "."""
    cells = printed_numbers()
    return [
        cells[name]
        for reference in references.split("; ")
        for name in fnmatch.filter(cells, reference)
    ]


@cache
def printed_numbers() -> dict[str, Cell]:
    """Return the published tables' cells that have numbers, by name."""
    cells = {}
    for table in TITLES:
        for line, row in enumerate(rows(table), start=2):
            for column, text in row.items():
                numbers = [float(word) for word in text.split() if NUMBER.fullmatch(word)]
                if numbers and column not in LABELS:
                    printed = f"{numbers[0]:.2f}" if TWO_DECIMALS.search(column) else text
                    name = f"{table}:{' '.join(row.values())}:{column}"
                    cells[name] = Cell(table, line, column, row, numbers, printed)
    return cells
