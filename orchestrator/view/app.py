"""The web application: one page per address, all in the same frame."""

from __future__ import annotations

from typing import Any
from urllib.parse import parse_qs, unquote

from dash import (
    Dash,
    Input,
    Output,
    ctx,
    dcc,
    get_relative_path,
    html,
    no_update,
    set_props,
)

from orchestrator.view import access, downloads, overview, parts, study_page, trials_page
from orchestrator.view.source import Source
from trainables.errors import UserError


def make_app(source: Source, token: str, prefix: str = "") -> Dash:
    """Return the application, whose pages require `token` and whose links begin with `prefix`."""
    app = Dash(
        __name__,
        title="Sweeps",
        requests_pathname_prefix=f"{prefix}/",
        update_title="",
        suppress_callback_exceptions=True,
        on_error=show_trouble,
    )
    app.layout = html.Div(
        [
            dcc.Location(id="address"),
            # Only in trouble: a tick would discard the answer to a click that is being computed.
            dcc.Interval(id="page-tick", interval=parts.LIVE_MS, disabled=True),
            html.Header(dcc.Link("Sweeps", href=get_relative_path("/"), className="home")),
            html.P(id="trouble", className="trouble", role="alert"),
            html.Main(id="page"),
        ]
    )

    @app.callback(
        Output("page", "children"),
        Output("trouble", "children"),
        Output("page-tick", "disabled"),
        Input("address", "pathname"),
        Input("address", "search"),
        Input("page-tick", "n_intervals"),
    )
    def page(path: str, search: str, _: int | None) -> tuple[Any, str, bool]:
        try:
            return lay_out(source, path.removeprefix(prefix), search), "", True
        except UserError as error:
            is_tick = ctx.triggered_id == "page-tick"
            return no_update if is_tick else None, parts.sentence_of(error), False

    for module in (parts, overview, study_page, trials_page):
        module.register(app, source)
    downloads.register(app.server, source)
    access.guard(app.server, token, app.csp_hashes(), prefix)
    return app


def show_trouble(error: Exception) -> None:
    """Show a UserError above the page, which stays unchanged. Raises any other error."""
    if not isinstance(error, UserError):
        raise error
    set_props("trouble", {"children": parts.sentence_of(error)})
    set_props("page-tick", {"disabled": False})


def lay_out(source: Source, path: str, search: str) -> Any:
    """Return the page at this address.

    Raises UserError if the page does not exist or the store cannot be read.
    """
    kind, _, target = unquote(path).strip("/").partition("/")
    query = parse_qs(search.lstrip("?"))
    if kind == "study":
        return study_page.layout(source, target)
    if kind in ("trial", "compare"):
        starts = [target] if kind == "trial" else query.get("trial", [])
        return trials_page.layout(source, starts, query.get("study", [""])[0])
    if kind:
        raise UserError(f"no such page: {path}. Open the overview.")
    return overview.layout(source)
