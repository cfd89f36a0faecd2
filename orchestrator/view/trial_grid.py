"""The table under the scatter: its pages come from the server, a box drawn in the scatter filters
it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dash_ag_grid
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from orchestrator.view import parts, rows
from orchestrator.view.source import Source
from orchestrator.view.table import StudyTable
from trainables.errors import UserError

PAGE = 50
COLUMN = {
    "sortable": True,
    "resizable": True,
    "width": 150,
    "floatingFilter": True,
    "wrapHeaderText": True,
    "autoHeaderHeight": True,
}
"""Any but where `rows.columns` says otherwise; a metric's title is on as many lines as it takes."""


def layout(table: StudyTable) -> list[Any]:
    """The table, its first page to be asked for."""
    return [
        html.P(id="trials-shown", role="status"),
        dcc.Store(id="brushed", data=[]),
        dash_ag_grid.AgGrid(
            id="trials",
            columnDefs=rows.columns(table),
            defaultColDef=COLUMN,
            rowModelType="infinite",
            getRowId="params.data.id",
            dashGridOptions=_grid_options(again=False),
            style={"height": "460px"},
        ),
    ]


def _grid_options(*, again: bool) -> dict[str, Any]:
    """`again` flips each time that the grid is to ask for its rows once more, as it does for pages
    of another size."""
    return {
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
        "cacheBlockSize": 2 * PAGE if again else PAGE,
        # The component knows of one request at a time.
        "maxConcurrentDatasourceRequests": 1,
        "enableCellTextSelection": True,
        "enableBrowserTooltips": True,
    }


def register(app: Dash, source: Source) -> None:
    """Answer the grid, keep it up with the store, and filter it by what is drawn in the scatter."""

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
            shown = rows.records(table, places[request["startRow"] : request["endRow"]], variant)
        except UserError as error:
            return {"rowData": [], "rowCount": 0}, parts.sentence_of(error)
        return {
            "rowData": shown,
            "rowCount": len(places),
        }, f"{len(places):,} of {len(table.ids):,} trials"

    @app.callback(
        Output("trials", "columnDefs"),
        Output("trials", "dashGridOptions"),
        Input("study-version", "data"),
        State("trials", "columnDefs"),
        State("trials", "dashGridOptions"),
        State("study-variant", "data"),
        prevent_initial_call=True,
    )
    def follow(
        _: str, shown: Sequence[Any], grid_options: Mapping[str, Any], variant: str
    ) -> tuple[Any, Any]:
        try:
            columns = rows.columns(source.table(source.key(variant)))
        except UserError:
            return no_update, no_update
        again = _grid_options(again=grid_options["cacheBlockSize"] == PAGE)
        return no_update if columns == shown else columns, again

    _register_brush(app, source)


def _register_brush(app: Dash, source: Source) -> None:
    @app.callback(
        Output("trials", "filterModel"),
        Output("brushed", "data"),
        Input("scatter", "relayoutData"),
        Input("study-x", "value"),
        Input("study-y", "value"),
        Input("study-scales", "value"),
        State("trials", "filterModel"),
        State("brushed", "data"),
        State("study-variant", "data"),
        prevent_initial_call=True,
    )
    def brush(
        drawn: Mapping[str, Any] | None,
        x: str,
        y: str,
        _: Sequence[str],
        filters: Mapping[str, Any] | None,
        brushed: list[str],
        variant: str,
    ) -> tuple[Any, Any]:
        is_drawn = ctx.triggered_id == "scatter"
        if is_drawn and not any(name.startswith("selections") for name in drawn or ()):
            return no_update, no_update
        try:
            # Other axes have no box yet; what the reader has typed into other columns stays.
            box = (
                box_filter(source.table(source.key(variant)), drawn or {}, x, y) if is_drawn else {}
            )
        except UserError:
            return no_update, no_update
        if not (box or brushed):
            return no_update, no_update
        others = {name: wanted for name, wanted in (filters or {}).items() if name not in brushed}
        return {**others, **box}, list(box)


def box_filter(table: StudyTable, drawn: Mapping[str, Any], x: str, y: str) -> dict[str, Any]:
    """The filters of the last box in what plotly says was drawn; none where there is no box."""
    boxes = drawn.get("selections")
    if boxes is None:  # a box that was moved comes by its corners: "selections[0].x0"
        box = {
            name.rpartition(".")[2]: value
            for name, value in drawn.items()
            if name.startswith("selections[")
        }
    else:
        box = boxes[-1] if boxes else {}
    filters = {}
    for axis, place in ((x, "x"), (y, "y")):
        ends = [
            end
            for end in (box.get(f"{place}0"), box.get(f"{place}1"))
            if isinstance(end, int | float)
        ]
        if len(ends) == 2 and axis in table.columns:
            filters[axis] = rows.along(table, axis, *sorted(ends))
    return filters
