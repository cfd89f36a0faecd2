"""What several pages are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any
from urllib.parse import quote, urlencode

from dash import Patch, dcc, html, no_update, set_props

from orchestrator.store import StoreAwayError, StudyKey
from orchestrator.variants import Variant
from orchestrator.view.figure import Figure
from trainables.errors import UserError

SHORT_ID = 12
"""Digits of a trial's id, as everywhere else."""
LIVE_MS = 3_000
WHOLE = 32
"""A text of so many letters is kept on one line of a table."""
Children = list[Any]


def study_link(key: StudyKey) -> Any:
    """A link to the study's page, called by name, scale, corpus and settings."""
    return dcc.Link(variant_words(key), href=study_address(key))


def variant_words(key: StudyKey) -> str:
    """ "gss_grid, quick, pydocs, --set training.learning_rate=5,10": changes as they are typed."""
    return ", ".join([key.study, key.scale, key.corpus]) + str(Variant.read(key.overrides))


def study_address(key: StudyKey) -> str:
    """Where the study's page is."""
    return f"/study/{quote(key.variant)}"


def trial_link(trial_id: str, name: str, key: StudyKey) -> Any:
    """A link to the trial's page, as a trial of this study."""
    return dcc.Link(name, href=trial_address(trial_id, key.variant))


def trial_address(trial_id: str, variant: str) -> str:
    """Where the trial's page is; `variant` is the study that it is looked at in."""
    return f"/trial/{trial_id[:SHORT_ID]}?{urlencode({'study': variant})}"


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


def facts(pairs: Sequence[tuple[str, Any]], *, empty: str = "") -> Any:
    """Names with their values; the sentence `empty` where there is none."""
    if not pairs:
        return html.P(empty, className="soft")
    return html.Dl([html.Div([html.Dt(name), html.Dd(value)]) for name, value in pairs])


def graph(name: str, figure: Figure, *, config: Any, height: int = 420) -> Any:
    """A figure that can be zoomed, and saved as its `config` says, see `graph_config`."""
    return dcc.Graph(id=name, figure=figure, config=config, style={"height": f"{height}px"})


def graph_again(
    name: str, figure: Figure, *, config: Any, shown: Mapping[str, str], height: int = 420
) -> Any:
    """The graph for its place; of a graph that is `shown`, by the `uirevision` of its figure, with
    the same axes, only what `change_to` changes."""
    if shown.get(name) != figure["layout"]["uirevision"]:
        return graph(name, figure, config=config, height=height)
    set_props(name, {"figure": change_to(figure), "config": config})
    return no_update


def change_to(figure: Figure) -> Patch:
    """What makes another figure over the same axes this one: all but what a reader has zoomed into
    or drawn there.

    Plotly's own `uirevision` does not keep that, as Dash writes it into the figure.
    """
    change, layout = Patch(), figure["layout"]
    change["data"] = figure["data"]
    for key in ("shapes", "annotations"):
        change["layout"][key] = layout.get(key, [])
    for key in ("showlegend", "margin"):
        change["layout"][key] = layout.get(key)
    for axis, key in product(("xaxis", "yaxis"), ("dtick", "automargin", "categoryarray")):
        change["layout"][axis][key] = layout[axis].get(key)
    return change


def graphs_again(
    figures: Mapping[str, Figure],
    lacks: Mapping[str, str],
    *,
    form: str,
    shown: Mapping[str, str],
    file: str = "",
) -> list[Any]:
    """For the place of each graph in `lacks` its figure as `graph_again` draws it, or what is said
    where it has none. What the camera saves is named `file` and the graph's name."""
    return [
        graph_again(name, figures[name], config=graph_config(form, f"{file}{name}"), shown=shown)
        if name in figures
        else html.P(lack, className="soft")
        for name, lack in lacks.items()
    ]


def axes_of(figures: Mapping[str, Figure]) -> dict[str, str]:
    """By graph the `uirevision` of its figure: what `graph_again` takes as `shown` the next
    time."""
    return {name: figure["layout"]["uirevision"] for name, figure in figures.items()}


def graph_config(form: str, name: str) -> Any:
    """What a figure's tool bar does; `form` is what its camera saves."""
    removed = ["lasso2d", "autoScale2d"]
    image = {"format": form, "filename": name, "scale": 2}
    return {
        # Its makers offer to take figures to a server of theirs: not from here.
        "displaylogo": False,
        "showSendToCloud": False,
        # By default WebGL draws four pixels for every one of the screen: a third of a large study's
        # page.
        "plotGlPixelRatio": 1,
        "responsive": True,
        "modeBarButtonsToRemove": removed,
        "toImageButtonOptions": image,
    }


def stop_button(name: str, text: str, question: str) -> Any:
    """A button that asks first."""
    return dcc.ConfirmDialogProvider(html.Button(text, className="stop"), id=name, message=question)


def trouble(what: UserError | str) -> Any:
    """What went wrong, where a reader sees it."""
    sentence = what if isinstance(what, str) else sentence_of(what)
    return html.P(sentence, className="trouble", role="alert")


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
