"""How often each value of a metric came up in each group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.analysis.groups import values_by_group
from search_spaces.analyses import Counts

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, kw_only=True)
class CountNumbers:
    """A table of counts."""

    request: Counts
    values: tuple[float, ...]
    """From the least to the greatest: those that came up, and those that could have."""
    counts: Mapping[str, tuple[int, ...]]
    """Group -> its done trials with each of `values`, in the order of the plan."""


def count_numbers(frame: pd.DataFrame, request: Counts) -> CountNumbers:
    """The table that a study asks for."""
    groups = values_by_group(frame, request.metric)
    values = tuple(sorted({*request.values, *(value for came_up in groups.values() for value in came_up)}))
    counts = {group: tuple(came_up.count(value) for value in values) for group, came_up in groups.items()}
    return CountNumbers(request=request, values=values, counts=counts)
