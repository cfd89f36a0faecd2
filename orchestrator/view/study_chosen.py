"""Below a study's table: learning curves and spectra of the chosen trials, the grid map, parallel
coordinates and the published values."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import numpy as np
from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from orchestrator.report import title
from orchestrator.store import ENDED, StudyKey
from orchestrator.view import choices, curve_figures, parts, rows, study_figures
from orchestrator.view.answers import Answers
from orchestrator.view.choices import MAP
from orchestrator.view.figure import Figure, empty
from orchestrator.view.source import Source
from orchestrator.view.table import StudyTable
from trainables.errors import UserError

MOST_CHOSEN, MOST_BEST, MOST_COMPARED = 20, 8, 6
OF_CHOSEN = ("learning curves", "spectra")
FOLLOWS: Mapping[str, Sequence[str]] = {
    "learning curves": ("version", "epochs", "form"),
    "spectra": ("version", "scale", "form"),
    "grid map": ("version", "filters", *MAP, "form"),
    "parallel coordinates": ("version", "filters", "y", "form"),
    "beside the papers": ("version", "answered"),
}
"""The tabs, and what changes what they show, beside the trials that are chosen."""
AXIS_PX = 100
"""Between two axes of parallel coordinates, at least."""
BEST = ("valid_perplexity", "test_perplexity")


def layout(source: Source, key: StudyKey, first: Mapping[str, Any]) -> Any:
    """The tabs with what is drawn at first, and the way to the page of comparison; `first` is where
    all choices stand that the drawing follows. Raises UserError where the store cannot be read."""
    table = source.table(key)
    first = {
        "tab": next(iter(FOLLOWS)),
        "scale": "logarithmic",
        "ticked": None,
        "filters": None,
        **first,
    }
    made = _draw(source, key, first, None)
    assert made is not None, "nothing is drawn yet"
    content, words, drawn = made
    menus = [
        html.Label(
            [
                html.Span(name),
                dcc.Dropdown(
                    choices.options(table, name), first[name], id=f"map-{name}", clearable=False
                ),
            ]
        )
        for name in MAP
    ]
    return html.Div(
        [
            dcc.Store(id="chosen-drawn", data=drawn),
            html.P(
                [html.Span(words, id="chosen-words"), " ", dcc.Link("", href="", id="compare")],
                className="soft",
            ),
            dcc.RadioItems(
                list(FOLLOWS),
                first["tab"],
                id="chosen-tab",
                inline=True,
                className="tabs",
                persistence_type="session",
                persistence=True,
            ),
            html.Div(menus, id="map-choices", className="controls", hidden=True),
            dcc.RadioItems(
                ["logarithmic", "linear"],
                first["scale"],
                id="spectra-scale",
                inline=True,
                className="hidden",
            ),
            html.Div(content, id="chosen", className="scroll"),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Draw what the tab is about, of the trials that are ticked, or of the best that the table
    shows."""

    @app.callback(
        output=(
            Output("chosen", "children"),
            Output("map-choices", "hidden"),
            Output("spectra-scale", "className"),
            Output("chosen-words", "children"),
            Output("chosen-drawn", "data"),
        ),
        inputs={
            "choice": {
                "tab": Input("chosen-tab", "value"),
                "scale": Input("spectra-scale", "value"),
                "ticked": Input("trials", "selectedRows"),
                "filters": Input("trials", "filterModel"),
                **{name: Input(f"map-{name}", "value") for name in MAP},
                "y": Input("study-y", "value"),
                "version": Input("study-version", "data"),
                "epochs": Input("study-epochs", "data"),
                "answered": Input("study-answered", "data"),
                "form": Input("picture-format", "value"),
            },
            "variant": State("study-variant", "data"),
            "drawn": State("chosen-drawn", "data"),
        },
    )
    def draw(
        choice: Mapping[str, Any], variant: str, drawn: Sequence[str] | None
    ) -> tuple[Any, ...]:
        hidden = (choice["tab"] != "grid map", "" if choice["tab"] == "spectra" else "hidden")
        try:
            again = _draw(source, source.key(variant), choice, drawn)
        except UserError as error:
            if (
                ctx.triggered_id == "study-version"
            ):  # no choice of the reader's: what is drawn may stay
                return (no_update,) * 5
            return parts.trouble(error), *hidden, "", None
        if again is None:
            return (no_update,) * 5
        content, words, now = again
        return content, *hidden, words, now

    @app.callback(
        Output("compare", "children"),
        Output("compare", "href"),
        Input("trials", "selectedRows"),
        State("study-variant", "data"),
    )
    def compare(ticked: Sequence[Mapping[str, Any]] | None, variant: str) -> tuple[str, str]:
        count = len(ticked or ())
        if not 2 <= count <= MOST_COMPARED:
            return (f"Two to {MOST_COMPARED} ticked trials can be compared." if count else ""), ""
        query = urlencode(
            [("study", variant), *(("trial", row["id"][: parts.SHORT_ID]) for row in ticked or ())]
        )
        return f"Compare these {count} side by side", f"/compare?{query}"


def _draw(
    source: Source, key: StudyKey, choice: Mapping[str, Any], drawn: Sequence[str] | None
) -> tuple[Any, str, Sequence[str]] | None:
    """What the tab shows, of which trials, in words, and what is drawn then: a description, and the
    axes of its figure. Nothing where that is `drawn` already: the table tells its filters and ticks
    as soon as it is there, and has none."""
    tab, table = choice["tab"], source.table(key)
    places = rows.chosen(table, choice["filters"] or {})
    ids, words = _chosen(table, places, choice["ticked"]) if tab in OF_CHOSEN else ([], "")
    now = json.dumps([tab, ids, words, *(choice[name] or None for name in FOLLOWS[tab])])
    if drawn and now == drawn[0]:
        return None
    if tab == "beside the papers":
        has_end = any(state in ENDED for state in table.ends["state"])
        return _beside_papers(source.answers(key), has_end=has_end), "", [now, ""]
    figure = (
        _of_chosen(source, table, ids, choice)
        if tab in OF_CHOSEN
        else _over_all(table.only(places), choice)
    )
    config = parts.graph_config(choice["form"], f"{key.variant}-{tab.replace(' ', '-')}")
    before = {"chosen-figure": drawn[1]} if drawn else {}
    content = parts.graph_again("chosen-figure", figure, config=config, shown=before, height=460)
    axes = figure["layout"]["uirevision"] if figure["data"] else ""
    if tab == "parallel coordinates" and figure["data"] and content is not no_update:
        content.style["minWidth"] = f"{AXIS_PX * len(figure['data'][0].get('dimensions', ()))}px"
    return content, words, [now, axes]


def _chosen(
    table: StudyTable, shown: Sequence[int], ticked: Sequence[Mapping[str, Any]] | None
) -> tuple[list[str], str]:
    """The ids of the trials that figures show, and which those are, in words; `shown` are the
    table's places."""
    if ticked:
        return [
            row["id"] for row in ticked[:MOST_CHOSEN]
        ], f"Of the {min(len(ticked), MOST_CHOSEN)} ticked trials."
    metric = next((name for name in BEST if name in table.metrics), None)
    if metric is None:
        return list(table.ids[:MOST_BEST]), "Of the first trials."
    values, places = table.numbers(metric), np.array(shown, dtype=np.intp)
    places = places[np.isfinite(values[places])]
    best = places[np.argsort(values[places], kind="stable")[:MOST_BEST]]
    words = f"Of the {min(len(places), MOST_BEST)} with the lowest {title(metric)}; tick trials in the table for others."
    return [table.ids[place] for place in best], words


def _of_chosen(
    source: Source, table: StudyTable, ids: Sequence[str], choice: Mapping[str, Any]
) -> Figure:
    names = {trial_id: table.names[table.places[trial_id]] for trial_id in ids}
    with source.store() as opened:
        if choice["tab"] == "learning curves":
            curves = {
                names[trial_id]: epochs for trial_id in ids if (epochs := opened.epochs(trial_id))
            }
            return (
                curve_figures.learning_curves(curves)
                if curves
                else empty("These trials have no epochs.")
            )
        spectra = {
            name: sigma
            for trial_id, name in names.items()
            if (sigma := opened.spectrum(trial_id)) is not None
        }
    linear = choice["scale"] == "linear"
    return (
        curve_figures.spectra(spectra, linear=linear)
        if spectra
        else empty("These trials have no spectrum.")
    )


def _over_all(table: StudyTable, choice: Mapping[str, Any]) -> Figure:
    if choice["tab"] == "grid map":
        row, column, value = (choice[name] for name in MAP)
        if not {row, column} <= table.columns.keys() or value not in table.numeric:
            return empty("A grid map needs two settings and a metric: choose them above.")
        return study_figures.grid_map(table, row, column, value)
    names = choices.parallel_columns(table)
    colour = choice["y"] if choice["y"] in table.numeric else next(iter(reversed(names)), None)
    return (
        study_figures.parallel(table, names, colour) if colour else empty("No trial is done yet.")
    )


def _beside_papers(answers: Answers | None, *, has_end: bool) -> Any:
    """The tables with published values; `has_end` says whether a trial has ended, from when on they
    are computed."""
    if answers is None:
        return html.P(
            "It is being computed." if has_end else "Computed as soon as a trial is done.",
            className="soft",
        )
    if answers.trouble:
        return parts.trouble(answers.trouble)
    if not answers.tables:
        return html.P(
            "No paper has printed values that would stand beside these.", className="soft"
        )
    shown: list[Any] = []
    for table in answers.tables:
        shown += [html.H3(table.caption), parts.table(table.head, table.body)]
    return html.Div(shown)
