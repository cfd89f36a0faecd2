"""A study's page: how far it is, a scatter of one's choice, the table under it, and tabs with
figures of the trials in the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pandas as pd
from dash import (
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    ctx,
    dcc,
    html,
    no_update,
    set_props,
)
from plotly.graph_objects import Figure

from orchestrator.analysis import ID_DIGITS
from orchestrator.report import CARD_FILE, read_card, title
from orchestrator.storage import is_url
from orchestrator.store import LOST, StudyKey, StudySummary
from orchestrator.variants import Variant
from orchestrator.view import figures, parts, study_table
from orchestrator.view.axes import AXES, MAP, first_axes, first_map, menus, parallel_columns
from orchestrator.view.source import Overview, Source
from orchestrator.view.trials import StudyTrials
from orchestrator.words import counted, duration
from search_spaces.catalog import NAMES, load_study
from search_spaces.study import Study
from trainables.errors import UserError

REPORT = "report.html"
TABS = ("learning curves", "spectra", "grid map", "parallel coordinates")
MOST_CHOSEN, MOST_BEST = 20, 8
BEST = ("valid_perplexity", "test_perplexity")
AXIS_PX = 100
"""Between two axes of parallel coordinates, at least."""


def layout(source: Source, variant: str) -> Any:
    """The page of the study of this variant. Raises UserError if there is none."""
    scales = dcc.Checklist(["x", "y"], [], id="study-scales", inline=True)
    summary = source.study(variant)
    study, trials = _built_in(summary.key), source.trials(summary.key)
    return html.Div(
        [
            dcc.Interval(id="study-tick", interval=parts.LIVE_MS),
            dcc.Store(id="study-variant", data=variant),
            dcc.Store(id="study-version", data=_version(trials)),
            dcc.Store(id="study-epochs"),
            html.Div(_head(source, summary), id="study-head"),
            html.Div(parts.stop_button(variant, "Stop this study"), id="study-stop", hidden=True),
            html.Div(
                [
                    *menus(trials, first_axes(study, trials), variant),
                    html.Label([html.Span("logarithmic"), scales]),
                ],
                className="controls",
            ),
            parts.graph("scatter", variant),
            html.P(
                "A point for each trial: click it to open its page, drag a box to have the table "
                "show only what is in it.",
                className="soft",
            ),
            *study_table.layout(trials),
            html.P(id="chosen-words", className="soft"),
            dcc.RadioItems(
                TABS,
                TABS[0],
                id="chosen-tab",
                inline=True,
                className="tabs",
                persistence_type="session",
                persistence=True,
            ),
            html.Div(
                menus(trials, first_map(study, trials), variant),
                id="map-choices",
                className="controls",
                hidden=True,
            ),
            html.Div(parts.graph("chosen", variant, height=460), className="scroll"),
        ]
    )


def _version(trials: StudyTrials) -> dict[str, Any]:
    """Another one for other trials; `away` is true after trouble, so that all is drawn again."""
    return {"shape": trials.shape, "read_s": trials.read_s.max(), "away": False}


def register(app: Dash, source: Source) -> None:
    """Have the page follow the store and its reader."""
    study_table.register(app)
    _register_chosen(app, source)

    @app.callback(
        Output("study-head", "children"),
        Output("study-stop", "hidden"),
        Output("study-epochs", "data"),
        Output("study-version", "data"),
        Output("trials", "rowTransaction"),
        Input("study-tick", "n_intervals"),
        State("study-variant", "data"),
        State("study-epochs", "data"),
        State("study-version", "data"),
    )
    def follow(
        _: int | None, variant: str, epochs: int | None, version: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        try:
            study = source.study(variant)
            head, trials = _head(source, study), source.trials(study.key)
            running = source.overview().running
        except UserError as error:
            away = no_update if version["away"] else {**version, "away": True}
            return parts.trouble(error), no_update, no_update, away, no_update
        now = _version(trials)
        if now["shape"] != version["shape"]:
            set_props("page", {"children": layout(source, variant)})
            return (no_update,) * 5
        trained = sum(trial.epoch or 0 for trial in running if trial.key == study.key)
        changes = study_table.rows(trials, since_s=version["read_s"])
        return (
            head,
            not study.counts["running"],
            no_update if trained == epochs else trained,
            no_update if now == version else now,
            {"update": changes} if changes else no_update,
        )

    @app.callback(
        Output({"drawn": "scatter"}, "data"),
        inputs={
            "axes": {name: Input(f"study-{name}", "value") for name in AXES},
            "logarithmic": Input("study-scales", "value"),
            "points": Input("points", "data"),
            "_": Input("study-version", "data"),
            "variant": State("study-variant", "data"),
        },
    )
    def draw(
        axes: Mapping[str, str | None],
        logarithmic: Sequence[str],
        points: Sequence[str] | None,
        _: object,
        variant: str,
    ) -> Any:
        try:
            trials = source.trials(source.study(variant).key)
        except UserError as error:
            return _in_place_of_a_figure(error)
        return figures.scatter(trials, axes, logarithmic, points)

    app.clientside_callback(
        ClientsideFunction("view", "open"),
        Output("address", "href", allow_duplicate=True),
        Input({"drawn": "scatter", "as": "graph"}, "clickData"),
        prevent_initial_call=True,
    )


def _in_place_of_a_figure(error: UserError) -> Any:
    """The error if the reader asked for another figure; what is drawn may stay otherwise."""
    if ctx.triggered_id == "study-version":
        return no_update
    return figures.empty(parts.sentence_of(error))


def _register_chosen(app: Dash, source: Source) -> None:
    @app.callback(
        Output({"drawn": "chosen"}, "data"),
        Output("chosen", "style"),
        Output("chosen-words", "children"),
        Output("map-choices", "hidden"),
        inputs={
            "tab": Input("chosen-tab", "value"),
            "axes": {name: Input(f"study-{name}", "value") for name in ("y", *MAP)},
            "shown": Input("shown", "data"),
            "ticked": Input("ticked", "data"),
            "_": (Input("study-version", "data"), Input("study-epochs", "data")),
            "variant": State("study-variant", "data"),
        },
    )
    def draw(
        tab: str,
        axes: Mapping[str, str | None],
        shown: Sequence[str] | None,
        ticked: Sequence[str],
        _: object,
        variant: str,
    ) -> tuple[Any, ...]:
        is_map, compare = tab == "grid map", _compare(ticked, variant)
        try:
            trials = source.trials(source.study(variant).key)
            frame = trials.of(shown)
            if is_map:
                return figures.grid_map(frame, *(axes[name] for name in MAP)), {}, compare, False
            if tab == "parallel coordinates":
                names = parallel_columns(trials)
                style = {"minWidth": f"{AXIS_PX * len(names)}px"}
                return figures.parallel(frame, names, axes["y"]), style, compare, True
            ids, words = _choose(frame, ticked)
            return _of_few(source, trials, ids, tab), {}, [words, " ", *compare], True
        except UserError as error:
            return _in_place_of_a_figure(error), {}, "", not is_map


def _compare(ticked: Sequence[str], variant: str) -> list[Any]:
    """The link to the page that compares the ticked trials."""
    if not 2 <= len(ticked) <= parts.MOST_COMPARED:
        words = f"Two to {parts.MOST_COMPARED} ticked trials can be compared."
        return [words] if ticked else []
    trials = [("trial", trial_id[:ID_DIGITS]) for trial_id in ticked]
    query = urlencode([("study", variant), *trials])
    return [dcc.Link(f"Compare these {len(ticked)} side by side", href=f"/compare?{query}")]


def _choose(frame: pd.DataFrame, ticked: Sequence[str]) -> tuple[list[str], str]:
    """The ids of the trials in a figure of few, and a sentence about them."""
    if ticked:
        return list(ticked[:MOST_CHOSEN]), f"Of {min(len(ticked), MOST_CHOSEN)} ticked trials."
    metric = next((name for name in BEST if name in frame), None)
    if metric is None:
        return list(frame.index[:MOST_BEST]), "Of the first trials."
    best = frame[metric].nsmallest(MOST_BEST).index
    words = f"Of the {len(best)} with the lowest {title(metric)}; tick trials for others."
    return list(best), words


def _of_few(source: Source, trials: StudyTrials, ids: Sequence[str], tab: str) -> Figure:
    names = trials.frame["name"]
    with source.store() as opened:
        if tab == "spectra":
            return figures.spectra({names[id_]: opened.spectrum(id_) for id_ in ids})
        return figures.learning_curves({names[id_]: opened.epochs(id_) for id_ in ids})


def _built_in(key: StudyKey) -> Study | None:
    """The study's description; None for a user's own, which lies in a file elsewhere."""
    return Variant.read(key.overrides).study(load_study(key.study)) if key.study in NAMES else None


def _head(source: Source, summary: StudySummary) -> list[Any]:
    """Title, question, the report's answer (and of which trials it is) with its time, progress and
    links. The title and question of a user's own study come with its report."""
    source.fetch("reports", lambda: source.storage.bring_reports(CARD_FILE))
    key = summary.key
    folder = source.storage.folder / "reports" / key.variant
    study, card = _built_in(key), read_card(folder / CARD_FILE)
    question = study.question if study else card.question if card else ""
    answer: list[Any] = ["A run writes a report every few minutes, and at its end."]
    if card:
        written = datetime.fromtimestamp((folder / CARD_FILE).stat().st_mtime, UTC)
        when = html.Span(f" (report of {written:%Y-%m-%d %H:%M} UTC)", className="soft")
        answer = [" ".join(card.findings[:2]), when]
    return [
        html.H1((study and study.title) or (card and card.title) or key.study),
        html.P(parts.variant_words(key), className="variant"),
        html.P(question, className="question"),
        html.P(answer, id="study-answer", className="answer"),
        html.P(_progress(summary, source.overview()), id="study-progress", className="progress"),
        html.P(_links(source, key, folder / REPORT), id="study-links"),
    ]


def _links(source: Source, key: StudyKey, report: Path) -> list[Any]:
    variant = quote(key.variant)
    files = [
        html.A(form.upper(), href=f"/download/study/{variant}.{form}") for form in ("csv", "json")
    ]
    if report.is_file():
        return [html.A("Report", href=f"/report/{variant}/{REPORT}", target="_blank"), *files]
    if is_url(str(source.storage)):
        return [html.Span(f"Report: {source.storage}/reports/{key.variant}/{REPORT}"), *files]
    return files


def _progress(summary: StudySummary, overview: Overview) -> str:
    counts, left = summary.counts, overview.seconds_left.get(summary.key)
    lost = sum(counts[state] for state in LOST)
    words = [f"{counts['done']:,} of {counted(sum(counts.values()), 'trial')} done"]
    words += [f"{counts['pruned']} stopped early"] if counts["pruned"] else []
    words += [f"{counts['running']} running"] if counts["running"] else []
    words += [f"{lost} without a result"] if lost else []
    words += [f"about {duration(left)} left"] if left is not None else []
    return ", ".join(words)
