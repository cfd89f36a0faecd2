"""Claims of the papers that other printed numbers, configs or files can check.

A row of claims.csv is one claim. It has the printed numbers (`cells`), the `inputs` to recompute
them from, a function of rules.py, and a verdict for each outcome. `cells` and `inputs` are patterns
of cell names. A name is "TABLE:all texts of the row:COLUMN".
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

# These columns only number the rows.
LABELS = ("stage", "context", "iteration")
NUMBER = re.compile(r"[-+]?\d+\.?\d*(e[-+]?\d+)?")
# The paper prints two decimals in these columns, but the CSV files drop a final zero.
TWO_DECIMALS = re.compile("ppl|_test_|params")


@dataclass(frozen=True, eq=False)
class Cell:
    """A cell with numbers, in a published table."""

    table: str
    line: int
    """Line in the CSV file; the heading is line 1."""
    column: str
    row: Row
    numbers: list[float]
    printed: str


@dataclass(frozen=True)
class Claim:
    """One row of claims.csv, with the table cells that it names."""

    row: Row
    cells: list[Cell]
    inputs: list[Cell]
    trials: Mapping[Any, Mapping[Any, Any]]

    @property
    def printed(self) -> str:
        """Return what the paper prints: the claim's text or, without one, its first number."""
        return self.row["printed"] or self.cells[0].printed


def claims(frame: pd.DataFrame) -> Iterator[Claim]:
    """Yield each claim; `frame` has the results of the trials that count word pairs."""
    trials = {row.get("text"): row for row in frame.to_dict("records")}
    for row in rows("claims"):
        yield Claim(row, look_up(row["cells"]), look_up(row["inputs"]), trials)


def look_up(references: str) -> list[Cell]:
    """Return the cells whose names match `references`, patterns separated by "; "."""
    cells = printed_numbers()
    return [
        cells[name]
        for reference in references.split("; ")
        for name in fnmatch.filter(cells, reference)
    ]


@cache
def printed_numbers() -> dict[str, Cell]:
    """Return all cells with numbers in the published tables, by cell name."""
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
