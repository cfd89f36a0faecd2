"""The table of trials below the scatter plot. A box drawn in the plot also filters the table."""

from __future__ import annotations

import math
from collections.abc import Hashable
from typing import Any

import dash_ag_grid
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html

from orchestrator.view.axes import labels
from orchestrator.view.trials import MOST_LEVELS, StudyTrials

COLUMN = {
    "width": 150,
    "floatingFilter": True,
    "wrapHeaderText": True,
    "autoHeaderHeight": True,
}
COLUMN_OPTIONS: dict[str, dict[str, Any]] = {
    "name": {"pinned": "left", "width": 236, "cellRenderer": "TrialLink", "cellClass": "opens"},
    "cause": {"flex": 1, "minWidth": 240},
}
NUMBER = {
    "filter": "agNumberColumnFilter",
    "valueFormatter": {"function": "number(params.value)"},
}
TEXT = {
    "filter": "agTextColumnFilter",
    # A box over a text axis may need a condition for each level; the default limit is two.
    "filterParams": {"maxNumConditions": MOST_LEVELS},
}
GRID = {
    "suppressFieldDotNotation": True,
    "rowSelection": {"mode": "multiRow", "headerCheckbox": False, "enableClickSelection": False},
    "selectionColumnDef": {"pinned": "left", "width": 44},
    "pagination": True,
    "paginationPageSize": 50,
    "paginationPageSizeSelector": False,
    "enableCellTextSelection": True,
}


def layout(trials: StudyTrials) -> list[Any]:
    """Return the table's elements."""
    return [
        html.P(id="trials-shown", role="status"),
        # Columns that a box filters; ids of the trials in the table (None: all), of the scatter
        # plot's points, and of the ticked trials.
        dcc.Store(id="boxed", data=[]),
        dcc.Store(id="shown"),
        dcc.Store(id="points"),
        dcc.Store(id="ticked", data=[]),
        dash_ag_grid.AgGrid(
            id="trials",
            columnDefs=[
                _column(trials, name, label) for name, label in labels(_names(trials)).items()
            ],
            rowData=rows(trials),
            defaultColDef=COLUMN,
            getRowId="params.data.id",
            dashGridOptions=GRID,
            style={"height": "460px"},
        ),
    ]


def _names(trials: StudyTrials) -> list[str]:
    return ["name", "state", *trials.settings, *trials.short_metrics, "attempt", "cause"]


def _column(trials: StudyTrials, name: str, label: str) -> dict[str, Any]:
    return {
        "field": name,
        "headerName": label,
        "headerTooltip": name,
        **(NUMBER if name in (*trials.numbers, "attempt") else TEXT),
        **COLUMN_OPTIONS.get(name, {}),
    }


def rows(trials: StudyTrials, since_s: float = -math.inf) -> list[dict[Hashable, Any]]:
    """Return the table's rows that were read after `since_s`."""
    frame = trials.frame.loc[trials.read_s > since_s, _names(trials)]
    records = frame.astype(object).where(frame.notna(), None)
    return records.assign(id=frame.index).to_dict("records")


def register(app: Dash) -> None:
    """Register the table's callbacks."""
    app.clientside_callback(
        ClientsideFunction("view", "choose"),
        Output("shown", "data"),
        Output("points", "data"),
        Output("ticked", "data"),
        Output("trials-shown", "children"),
        Input("trials", "virtualRowData"),
        Input("trials", "selectedRows"),
        Input("trials", "rowData"),
        State("boxed", "data"),
        State("shown", "data"),
        State("points", "data"),
        State("ticked", "data"),
    )
    app.clientside_callback(
        ClientsideFunction("view", "brush"),
        Output("trials", "filterModel"),
        Output("boxed", "data"),
        Input({"drawn": "scatter", "as": "graph"}, "relayoutData"),
        Input("study-x", "value"),
        Input("study-y", "value"),
        Input("study-scales", "value"),
        State({"drawn": "scatter", "as": "graph"}, "figure"),
        State("trials", "filterModel"),
        State("boxed", "data"),
        prevent_initial_call=True,
    )
