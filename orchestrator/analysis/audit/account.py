"""Every number that the published tables print, and what became of it: none is left out silently."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from orchestrator.analysis.audit.check import Check, Place
from search_spaces.published import rows, tables

Fate = Literal["differs", "open", "agrees", "compatible", "explained", "used", "nothing"]
"""Of the verdicts on a number the first in this order counts. used: others were computed from it. nothing: no other
printed number, config or file determines it."""
FATES: tuple[Fate, ...] = get_args(Fate)
LABELS = frozenset({"stage"})
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


def printed_numbers() -> Mapping[Place, int]:
    """Every cell with numbers, and how many it holds: lists of values tried stand in one cell."""
    found = {}
    for table in tables():
        for line, row in enumerate(rows(table)):
            for column, text in row.items():
                count = 0 if column in LABELS else sum(map(_is_number, text.split()))
                if count:
                    found[Place(table, line, column)] = count
    return found


def account(checks: Iterable[Check]) -> tuple[AccountLine, ...]:
    """A line for each published table, in order of names.

    Raises LookupError for a check about a cell that holds no number.
    """
    fates = _fates(checks)
    numbers = printed_numbers()
    if lost := sorted(set(fates) - set(numbers)):
        raise LookupError(f"checks are about cells without a number: {lost[:3]}")
    lines = []
    for table in tables():
        own = {place: count for place, count in numbers.items() if place.table == table}
        counts: dict[Fate, int] = dict.fromkeys(FATES, 0)
        for place, count in own.items():
            counts[fates.get(place, "nothing")] += count
        nothing = dict.fromkeys(place.column for place in own if place not in fates)
        lines.append(AccountLine(table=table, counts=counts, nothing=tuple(nothing)))
    return tuple(lines)


def _fates(checks: Iterable[Check]) -> dict[Place, Fate]:
    fates: dict[Place, Fate] = {}
    for check in checks:
        told: list[tuple[Place, Fate]] = [(place, check.verdict) for place in check.covers]
        told += [(place, "used") for place in check.uses]
        for place, fate in told:
            fates[place] = min(fates.get(place, fate), fate, key=FATES.index)
    return fates


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
