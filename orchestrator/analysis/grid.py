"""Metrics over the values of two settings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from orchestrator.analysis.tidy_frames import tidy, values_of_done
from orchestrator.store import LOST, TrialState
from search_spaces.analyses import GridMap

# Worst first: a grid cell shows the worst state of its trials.
BAD_STATES: tuple[TrialState, ...] = (*LOST, "pruned", "running", "planned")


@dataclass(frozen=True, kw_only=True)
class GridNumbers:
    """Answer to GridMap."""

    request: GridMap
    cells: pd.DataFrame
    """One row per metric and pair of config values, ascending. `value` is the mean over done
    trials. `settings` is their number of settings, above one if other config values differ, too."""


def grid_numbers(frame: pd.DataFrame, request: GridMap) -> GridNumbers | None:
    """Return the metrics by pair of config values; None if no trial has both values."""
    if not {request.row, request.column} <= set(frame.columns):
        return None
    groups = dict(iter(frame.groupby([request.row, request.column])))
    if not groups:
        return None
    rows, columns = (
        sorted({pair[axis] for pair in groups}, key=lambda value: (isinstance(value, str), value))
        for axis in (0, 1)
    )
    cells = []
    for metric in request.metrics:
        values = values_of_done(frame, metric, "setting", request.row, request.column)
        values_by_pair = dict(iter(values.groupby([request.row, request.column])))
        for pair in product(rows, columns):
            cell = _cell(groups.get(pair, frame[:0]), values_by_pair.get(pair, values[:0]))
            cells.append({"metric": metric, "row": pair[0], "column": pair[1]} | cell)
    return GridNumbers(request=request, cells=tidy(cells))


def _cell(trials: pd.DataFrame, values: pd.DataFrame) -> dict[str, Any]:
    states = set(trials["state"])
    return {
        "value": math.fsum(values["value"]) / len(values) if len(values) else None,
        "state": next(
            (state for state in BAD_STATES if state in states), "done" if states else "none"
        ),
        "trials": len(trials),
        "done": len(values),
        "settings": values["setting"].nunique(),
    }
