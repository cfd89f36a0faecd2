"""Metrics over two config values."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd

from orchestrator.analysis.tidy_frames import tidy, values_of_done
from orchestrator.store import LOST, TrialState
from search_spaces.analyses import GridMap

BAD_STATES: tuple[TrialState, ...] = (*LOST, "pruned", "running", "planned")
"""Worst first: a cell has the worst state of its trials."""
NOTHING = {"value": None, "state": "none", "trials": 0, "done": 0, "settings": 0}


@dataclass(frozen=True, kw_only=True)
class GridNumbers:
    """Answer to a GridMap request."""

    request: GridMap
    cells: pd.DataFrame
    """One row per metric and pair of config values, both ascending: metric, row, column, value
    (mean of the done trials or None), state ("done" if every trial is, "none" without trials, else
    the worst), trials, done, settings (of the done trials; above one if more than the two values
    and the seed differs)."""


def grid_numbers(frame: pd.DataFrame, request: GridMap) -> GridNumbers | None:
    """Return the grids over the trials with both config values; None without such trials."""
    if not {request.row, request.column} <= set(frame.columns):
        return None
    places = dict(iter(frame.groupby([request.row, request.column])))
    if not places:
        return None
    rows, columns = (
        sorted({place[axis] for place in places}, key=lambda value: (isinstance(value, str), value))
        for axis in (0, 1)
    )
    cells = []
    for metric in request.values:
        done = values_of_done(frame, metric, "setting", request.row, request.column)
        measured = dict(iter(done.groupby([request.row, request.column])))
        for place in product(rows, columns):
            cell = NOTHING
            if place in places:
                cell = _cell(places[place], measured.get(place, done[:0]))
            cells.append({"metric": metric, "row": place[0], "column": place[1]} | cell)
    return GridNumbers(request=request, cells=tidy(cells))


def _cell(trials: pd.DataFrame, measured: pd.DataFrame) -> dict[str, Any]:
    states = set(trials["state"])
    return {
        "value": math.fsum(measured["value"]) / len(measured) if len(measured) else None,
        "state": next((state for state in BAD_STATES if state in states), "done"),
        "trials": len(trials),
        "done": len(measured),
        "settings": measured["setting"].nunique(),
    }
