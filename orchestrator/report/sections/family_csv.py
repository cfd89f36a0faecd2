"""The csv files of families of tests: a line for each, under the names of its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.analysis.statistics.correlation import Interval


def csv_lines(records: Sequence[Mapping[str, Any]]) -> Iterator[list[Any]]:
    """A heading and a line for each record, which all have the same keys."""
    yield list(records[0]) if records else ["group", "baseline"]
    yield from (list(record.values()) for record in records)


def ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    """The two ends of an interval under names of their own; None where there is none."""
    return {f"{name}_low": interval.low if interval else None, f"{name}_high": interval.high if interval else None}
