"""Elements that several pages share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from dash import (
    MATCH,
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    ctx,
    dcc,
    get_relative_path,
    html,
    no_update,
)

from orchestrator.store import StoreAwayError, StudyKey
from orchestrator.variants import Variant
from orchestrator.view import figures
from orchestrator.view.source import Source
from orchestrator.words import short_id
from trainables.errors import UserError

LIVE_MS = 3_000
LONGEST_LINE = 32
"""Longest text on one line of a table, in characters."""
MOST_COMPARED = 6
Children = list[Any]


def register(app: Dash, source: Source) -> None:
    """Register the callbacks of graphs and stop buttons."""
    app.clientside_callback(
        ClientsideFunction("view", "draw"),
        Output({"drawn": MATCH, "as": "graph"}, "figure"),
        Input({"drawn": MATCH}, "data"),
        State({"drawn": MATCH, "as": "graph"}, "figure"),
    )

    @app.callback(
        Output({"stop": MATCH, "as": "answer"}, "children"),
        Input({"stop": MATCH}, "submit_n_clicks"),
        prevent_initial_call=True,
    )
    def stop(clicks: int | None) -> Any:
        if not clicks:
            return no_update
        target = ctx.triggered_id["stop"]
        # A study's variant has hyphens, a trial's id has none.
        with source.store() as opened:
            opened.ask_to_stop(source.study(target).key if "-" in target else target)
        return "Asked to stop. Results and checkpoints are kept. Run the command again to resume."


def graph(name: str, file: str) -> Any:
    """Return a figure that can be zoomed, and saved as `file`.

    Callbacks draw it with `Output({"drawn": name}, "data")`.
    """
    config: Any = {
        # Remove plotly's logo and its button that uploads figures to its makers' server.
        "displaylogo": False,
        "showSendToCloud": False,
        # By default WebGL draws four pixels for each screen pixel, which is slow.
        "plotGlPixelRatio": 1,
        "responsive": True,
        "modeBarButtonsToRemove": ["lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"filename": f"{file}-{name}", "format": "svg"},
    }
    figure = dcc.Graph(
        id={"drawn": name, "as": "graph"},
        figure=figures.empty_figure(""),
        config=config,
        style={"height": "440px"},
    )
    return html.Div([dcc.Store(id={"drawn": name}), figure], id=name)


def stop_button(target: str, text: str) -> Any:
    """Return a button that stops a study (by variant) or trial (by id) after confirmation."""
    question = f"{text}? Results and checkpoints are kept."
    button = html.Button(text, className="stop")
    dialog = dcc.ConfirmDialogProvider(button, id={"stop": target}, message=question)
    return html.P([dialog, " ", html.Span(id={"stop": target, "as": "answer"}, role="status")])


def study_link(key: StudyKey) -> Any:
    """Return a link to the study."""
    words = ", ".join([key.study, key.scale, key.corpus]) + str(Variant.read(key.overrides))
    return dcc.Link(words, href=get_relative_path(f"/study/{quote(key.variant)}"))


def trial_link(trial_id: str, name: str, key: StudyKey) -> Any:
    """Return a link to the trial."""
    query = urlencode({"study": key.variant})
    return dcc.Link(name, href=get_relative_path(f"/trial/{short_id(trial_id)}?{query}"))


def downloads(key: StudyKey, trial_ids: Sequence[str] = ()) -> list[Any]:
    """Return links to downloads of the trials (default: all)."""
    query = urlencode([("trial", trial_id) for trial_id in trial_ids])
    address = get_relative_path(f"/download/study/{quote(key.variant)}")
    return [html.A(form.upper(), href=f"{address}.{form}?{query}") for form in ("csv", "json")]


def table(head: Sequence[str], body: Sequence[Sequence[Any]], *, empty: str = "") -> Any:
    """Return a table, or the text `empty` if there are no rows."""
    if not body:
        return html.P(empty, className="soft")
    rows = [html.Tr([html.Td(cell, className=_kind(cell)) for cell in row]) for row in body]
    return html.Div(
        html.Table([html.Thead(html.Tr([html.Th(name) for name in head])), html.Tbody(rows)]),
        className="scroll",
    )


def sentence_of(error: UserError) -> str:
    """Return the error's message. If the store cannot be read, it gives no advice on commands."""
    if isinstance(error, StoreAwayError):
        return f"{error.problem}. This page loads again by itself once the store can be read."
    return str(error)


def host_of(owner: str) -> str:
    """Return the host in a driver's name ("host:...")."""
    return owner.partition(":")[0]


def _kind(cell: Any) -> str:
    if isinstance(cell, str):
        return "short" if len(cell) <= LONGEST_LINE else "long"
    return "number" if isinstance(cell, int | float) else ""
