"""Metrics laid out over two config values."""

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
"""What a cell of several trials is, the worst first."""
NOTHING = {"value": None, "state": "none", "trials": 0, "done": 0, "settings": 0}


@dataclass(frozen=True, kw_only=True)
class GridNumbers:
    """The answer to a GridMap request."""

    request: GridMap
    cells: pd.DataFrame
    """A row for each metric and each pair of config values, both ascending: metric, row, column,
    value (mean over the cell's done trials; None without any), state ("done" if every trial of the
    cell is, "none" if the study has no such trial, else the worst state), trials, done (trials in
    the mean), settings (of these: more than one if more than the two config values and the seed
    differ)."""


def grid_numbers(frame: pd.DataFrame, request: GridMap) -> GridNumbers | None:
    """Return the grids that a study asks for; trials without one of the two config values are left
    out. None if no trial has them."""
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
