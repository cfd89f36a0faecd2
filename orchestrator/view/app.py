"""The application: pages by their addresses, the same frame around all of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

from dash import Dash, Input, Output, dcc, html

from orchestrator.view import (
    access,
    compare_page,
    downloads,
    overview,
    parts,
    study_page,
    trial_page,
)
from orchestrator.view.source import Source
from trainables.errors import UserError

SCRIPTS = (
    "dash_ag_grid/async-community.js",
    "dash/dcc/async-graph.js",
    "dash/dcc/async-dropdown.js",
    "plotly/package_data/plotly.min.js",
)
"""Of the libraries of table, menus and figures: Dash asks for them once a page has one, after two
answers of the server; here a browser reads them meanwhile. The largest, 5 MB, comes last."""


def make_app(source: Source, token: str, port: int) -> Dash:
    """The pages over the source, for whoever has the token."""
    app = Dash(
        __name__,
        title="Sweeps",
        update_title="",
        assets_folder=str(Path(__file__).parent / "assets"),
        external_scripts=[
            {"src": f"/_dash-component-suites/{script}", "defer": "defer"} for script in SCRIPTS
        ],
        suppress_callback_exceptions=True,
    )
    app.layout = html.Div(
        [
            dcc.Location(id="address"),
            html.Header(
                [
                    dcc.Link("Sweeps", href="/", className="home"),
                    html.Label(
                        [
                            "Figures are saved as ",
                            dcc.RadioItems(["png", "svg"], "png", id="picture-format", inline=True),
                        ],
                        className="soft",
                    ),
                ]
            ),
            html.Main(id="page"),
            # Ticks where the page is a sentence about trouble, which may pass.
            dcc.Interval(id="page-again", interval=parts.LIVE_MS, disabled=True),
        ]
    )

    @app.callback(
        Output("page", "children"),
        Output("page-again", "disabled"),
        Input("address", "pathname"),
        Input("address", "search"),
        Input("page-again", "n_intervals"),
    )
    def page(path: str | None, search: str | None, _: int | None) -> tuple[Any, bool]:
        try:
            return _page(source, path or "/", search or ""), True
        except UserError as error:
            return [parts.trouble(error), html.P(dcc.Link("To the overview", href="/"))], False

    for page_parts in (parts, overview, study_page, trial_page, compare_page):
        page_parts.register(app, source)
    downloads.register(app.server, source)
    access.guard(app.server, token, port, app.csp_hashes())
    return app


def _page(source: Source, path: str, search: str) -> Any:
    """What is at this address. Raises UserError where there is nothing, or the store cannot be
    read."""
    kind, _, rest = unquote(path).strip("/").partition("/")
    asked = parse_qs(search.lstrip("?"))
    if kind == "study":
        return study_page.layout(source, rest)
    if kind == "trial":
        return trial_page.layout(source, rest, asked.get("study", [""])[0])
    if kind == "compare":
        return compare_page.layout(source, asked.get("trial", []), asked.get("study", [""])[0])
    if kind:
        raise UserError(f"there is no page {path}")
    return overview.layout()
