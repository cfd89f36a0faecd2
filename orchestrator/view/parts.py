"""What several pages are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from dash import MATCH, ClientsideFunction, Dash, Input, Output, State, ctx, dcc, html, no_update

from orchestrator.store import StoreAwayError, StudyKey
from orchestrator.variants import Variant
from orchestrator.view import figures
from orchestrator.view.source import Source
from orchestrator.words import short_id
from trainables.errors import UserError

LIVE_MS = 3_000
WHOLE = 32
"""A text of at most this many letters is kept on one line of a table."""
MOST_COMPARED = 6
Children = list[Any]


def register(app: Dash, source: Source) -> None:
    """Have graphs draw figures and stop buttons work, on every page."""
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
        # A trial's id has no hyphen.
        stopped = source.study(target).key if "-" in target else target
        with source.store() as opened:
            opened.ask_to_stop(stopped)
        return "Asked to stop. Results and checkpoints are kept; run the same command to resume."


def graph(name: str, file: str) -> Any:
    """A figure that can be zoomed and saved as `file`; a callback draws it by `Output({"drawn":
    name}, "data")`."""
    config: Any = {
        # Its makers offer to take figures to a server of theirs: not from here.
        "displaylogo": False,
        "showSendToCloud": False,
        # By default WebGL draws four pixels for every one of the screen, which is slow.
        "plotGlPixelRatio": 1,
        "responsive": True,
        "modeBarButtonsToRemove": ["lasso2d", "autoScale2d"],
        "toImageButtonOptions": {"filename": f"{file}-{name}", "format": "svg"},
    }
    figure = dcc.Graph(
        id={"drawn": name, "as": "graph"},
        figure=figures.empty(""),
        config=config,
        style={"height": "440px"},
    )
    return html.Div([dcc.Store(id={"drawn": name}), figure], id=name)


def stop_button(target: str, text: str) -> Any:
    """A button that stops a study (by its variant) or a trial (by its id), and asks first."""
    question = f"{text}? Results and checkpoints are kept."
    button = html.Button(text, className="stop")
    ask = dcc.ConfirmDialogProvider(button, id={"stop": target}, message=question)
    return html.P([ask, " ", html.Span(id={"stop": target, "as": "answer"}, role="status")])


def study_link(key: StudyKey) -> Any:
    """A link to the study's page, called by name, scale, corpus and settings."""
    words = ", ".join([key.study, key.scale, key.corpus]) + str(Variant.read(key.overrides))
    return dcc.Link(words, href=f"/study/{quote(key.variant)}")


def trial_link(trial_id: str, name: str, key: StudyKey) -> Any:
    """A link to the trial's page, as a trial of this study."""
    query = urlencode({"study": key.variant})
    return dcc.Link(name, href=f"/trial/{short_id(trial_id)}?{query}")


def downloads(key: StudyKey, trial_ids: Sequence[str] = ()) -> list[Any]:
    """Links to the results of these trials of the study (default: of all), as files."""
    query = urlencode([("trial", trial_id) for trial_id in trial_ids])
    address = f"/download/study/{quote(key.variant)}"
    return [html.A(form.upper(), href=f"{address}.{form}?{query}") for form in ("csv", "json")]


def table(head: Sequence[str], body: Sequence[Sequence[Any]], *, empty: str = "") -> Any:
    """A table that scrolls sideways where it is wider than the page; the sentence `empty` where it
    has no row."""
    if not body:
        return html.P(empty, className="soft")
    rows = [html.Tr([html.Td(cell, className=_kind(cell)) for cell in row]) for row in body]
    return html.Div(
        html.Table([html.Thead(html.Tr([html.Th(name) for name in head])), html.Tbody(rows)]),
        className="scroll",
    )


def sentence_of(error: UserError) -> str:
    """What a reader of a page is told of the error, who can wait and has no command to type
    again."""
    if isinstance(error, StoreAwayError):
        return f"{error.problem}. This page comes back by itself once the store can be read."
    return str(error)


def host_of(owner: str) -> str:
    """The machine of a command, from what the store calls it."""
    return owner.partition(":")[0]


def _kind(cell: Any) -> str:
    if isinstance(cell, str):
        return "short" if len(cell) <= WHOLE else "long"
    return "number" if isinstance(cell, int | float) else ""
