"""The table under the scatter: its pages come from the server, a box drawn in the scatter filters it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dash_ag_grid
from dash import Dash, Input, Output, State, html, no_update

from orchestrator.view import rows
from orchestrator.view.parts import trial_address
from orchestrator.view.source import Source
from orchestrator.view.table import StudyTable
from trainables.errors import UserError

PAGE = 50


def layout(table: StudyTable) -> Any:
    """The table, its first page to be asked for."""
    return [
        html.P(id="trials-shown", role="status"),
        dash_ag_grid.AgGrid(
            id="trials",
            columnDefs=rows.columns(table),
            defaultColDef={"sortable": True, "resizable": True, "width": 150, "floatingFilter": True},
            rowModelType="infinite",
            getRowId="params.data.id",
            dashGridOptions={
                "suppressFieldDotNotation": True,
                "rowSelection": {
                    "mode": "multiRow",
                    "checkboxes": True,
                    "headerCheckbox": False,
                    "enableClickSelection": False,
                },
                "selectionColumnDef": {"pinned": "left", "width": 44},
                "pagination": True,
                "paginationPageSize": PAGE,
                "paginationPageSizeSelector": False,
                "cacheBlockSize": PAGE,
                # The component knows of one request at a time.
                "maxConcurrentDatasourceRequests": 1,
                "enableCellTextSelection": True,
            },
            className="ag-theme-quartz-auto-dark",
            style={"height": "460px"},
        ),
    ]


def register(app: Dash, source: Source) -> None:
    """Answer the grid, and filter it by what is drawn in the scatter."""

    @app.callback(
        Output("trials", "getRowsResponse"),
        Output("trials-shown", "children"),
        Input("trials", "getRowsRequest"),
        State("study-variant", "data"),
    )
    def page(request: Mapping[str, Any] | None, variant: str) -> tuple[Any, Any]:
        if request is None:
            return no_update, no_update
        try:
            table = source.table(source.key(variant))
            places = rows.chosen(table, request["filterModel"] or {}, request["sortModel"] or ())
            shown = rows.records(table, places[request["startRow"] : request["endRow"]])
        except UserError as error:
            return {"rowData": [], "rowCount": 0}, str(error)
        return {"rowData": shown, "rowCount": len(places)}, f"{len(places):,} of {len(table.ids):,} trials"

    @app.callback(
        Output("address", "href", allow_duplicate=True),
        Input("trials", "cellClicked"),
        prevent_initial_call=True,
    )
    def open_trial(click: Mapping[str, Any] | None) -> Any:
        return trial_address(str(click["rowId"])) if click and click["colId"] == "name" else no_update

    @app.callback(
        Output("trials", "filterModel"),
        Input("scatter", "relayoutData"),
        State("study-x", "value"),
        State("study-y", "value"),
        prevent_initial_call=True,
    )
    def brush(drawn: Mapping[str, Any] | None, x: str, y: str) -> Any:
        if not any(name.startswith("selections") for name in drawn or ()):
            return no_update
        return box_filter(drawn or {}, x, y)


def box_filter(drawn: Mapping[str, Any], x: str, y: str) -> dict[str, Any]:
    """The filters of the last box in what plotly says was drawn; none where there is no box."""
    boxes = drawn.get("selections")
    if boxes is None:  # a box that was moved comes by its corners: "selections[0].x0"
        box = {name.rpartition(".")[2]: value for name, value in drawn.items() if name.startswith("selections[")}
    else:
        box = boxes[-1] if boxes else {}
    if not {"x0", "x1", "y0", "y1"} <= box.keys():
        return {}
    return {
        x: rows.between(*sorted((box["x0"], box["x1"]))),
        y: rows.between(*sorted((box["y0"], box["y1"]))),
    }
