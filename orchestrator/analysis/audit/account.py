"""Every check, and every number that the published tables print with what became of it: none is
left out silently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Literal, get_args

from orchestrator.analysis.audit import arithmetic, capacity, predictions, ranks, seeds
from orchestrator.analysis.audit.check import Check, PrintedNumber, Verdict
from search_spaces.published import rows, tables

if TYPE_CHECKING:
    import pandas as pd

Fate = Literal["differs", "open", "agrees", "compatible", "explained", "used", "nothing"]
"""Of the verdicts on a number the first in this order counts. used: others were computed from it.
nothing: no other printed number, config or file determines it."""
FATES: tuple[Fate, ...] = get_args(Fate)
USED: Fate = "used"
LABELS = frozenset({"stage", "context", "iteration"})
"""Columns of numerals that number something and measure nothing."""


@dataclass(frozen=True, kw_only=True)
class AccountLine:
    """The numbers of one published table."""

    table: str
    counts: Mapping[Fate, int]
    nothing: tuple[str, ...]
    """Columns that have a number which nothing determines."""

    @property
    def numbers(self) -> int:
        """All of them."""
        return sum(self.counts.values())


@dataclass(frozen=True, kw_only=True)
class AuditNumbers:
    """Every check, and an account of every printed number."""

    checks: tuple[Check, ...]
    account: tuple[AccountLine, ...]

    def having(self, verdict: Verdict) -> tuple[Check, ...]:
        """The checks with that verdict."""
        return tuple(check for check in self.checks if check.verdict == verdict)


def audit_numbers(frame: pd.DataFrame) -> AuditNumbers:
    """All that can be recomputed; `frame` has the trials that counted word pairs."""
    checks = (
        *seeds.checks(),
        *arithmetic.checks(),
        *ranks.checks(),
        *predictions.checks(),
        *capacity.checks(),
        *ranks.correlations(),
        *capacity.tuned_settings(),
        *arithmetic.word_pairs(frame),
    )
    return AuditNumbers(checks=checks, account=account(checks))


def account(checks: Iterable[Check]) -> tuple[AccountLine, ...]:
    """A line for each published table, in order of names.

    Raises LookupError for a check about a cell that holds no number.
    """
    fates: dict[PrintedNumber, Fate] = {}
    for check in checks:
        for number, fate in (
            *zip(check.covers, repeat(check.verdict)),
            *zip(check.uses, repeat(USED)),
        ):
            fates[number] = min(fates.get(number, fate), fate, key=FATES.index)
    lines = []
    for table in tables():
        counts, nothing = dict.fromkeys(FATES, 0), []
        for cell, count in _numbers(table).items():
            fate = fates.pop(cell, "nothing")
            counts[fate] += count
            nothing += [cell.column] if fate == "nothing" else []
        lines.append(AccountLine(table=table, counts=counts, nothing=tuple(dict.fromkeys(nothing))))
    if fates:
        raise LookupError(f"checks are about cells without a number: {sorted(fates)[:3]}")
    return tuple(lines)


def _numbers(table: str) -> Mapping[PrintedNumber, int]:
    """Every cell with numbers, and how many it holds: lists of values tried stand in one cell."""
    counts = {
        PrintedNumber(table, line, column): sum(map(_is_number, text.split()))
        for line, row in enumerate(rows(table))
        for column, text in row.items()
        if column not in LABELS
    }
    return {cell: count for cell, count in counts.items() if count}


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
