"""A study's page: progress, a scatter plot, a table, and figures of its trials."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote, urlencode

import pandas as pd
from dash import (
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    dcc,
    get_relative_path,
    html,
    no_update,
    set_props,
)
from plotly.graph_objects import Figure

from orchestrator.report import CARD_FILE, Card, title
from orchestrator.store import LOST, StudySummary
from orchestrator.variants import Variant
from orchestrator.view import figures, parts, study_table
from orchestrator.view.axes import AXES, labels, menus
from orchestrator.view.overview import progress
from orchestrator.view.source import Source
from orchestrator.view.trials import StudyTrials
from orchestrator.words import short_id
from search_spaces.catalog import NAMES, load_study
from search_spaces.study import Study, group_of
from trainables.trial_folder import Epoch

REPORT = "report.html"
TABS = ("learning curves", "spectra")
MOST_CHOSEN, MOST_BEST, MOST_SEEDS = 20, 8, 20
MEANS = (
    "settings{}. A line is the mean over the seeds that have the epoch "
    f"(at most {MOST_SEEDS}), its band their range. Tick trials to show single curves."
)


def layout(source: Source, variant: str) -> Any:
    """Return the study's page. Raises UserError if it does not exist."""
    scales = dcc.Checklist(["x", "y"], [], id="study-scales", inline=True)
    summary, trials = source.study(variant), source.trials(variant)
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
                    *menus(trials, variant),
                    html.Label([html.Span("logarithmic"), scales]),
                ],
                className="controls",
            ),
            parts.graph("scatter", variant),
            html.P(
                "Each point is a trial. Click a point to open its page. Drag a box to filter the "
                "table.",
                className="soft",
            ),
            *study_table.layout(trials),
            html.P(id="chosen-words", className="soft"),
            dcc.RadioItems(
                TABS[:1],
                TABS[0],
                id="chosen-tab",
                inline=True,
                className="tabs",
                persistence_type="session",
                persistence=variant,
            ),
            dcc.Dropdown([], id="chosen-curve", placeholder="metric of the curves"),
            parts.graph("chosen", variant),
        ]
    )


def _version(trials: StudyTrials) -> dict[str, Any]:
    return {"shape": trials.shape, "read_s": trials.read_s.max()}


def register(app: Dash, source: Source) -> None:
    """Register the page's callbacks."""
    study_table.register(app)

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
        study, trials = source.study(variant), source.trials(variant)
        new_version = _version(trials)
        if new_version["shape"] != version["shape"]:
            set_props("page", {"children": layout(source, variant)})
            return (no_update,) * 5
        running = source.overview().running
        epoch_count = sum(trial.epoch or 0 for trial in running if trial.key == study.key)
        changes = study_table.rows(trials, since_s=version["read_s"])
        return (
            _head(source, study),
            not study.counts["running"],
            no_update if epoch_count == epochs else epoch_count,
            no_update if new_version == version else new_version,
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
    ) -> Figure:
        return figures.scatter(source.trials(variant), axes, logarithmic, points)

    @app.callback(
        Output({"drawn": "chosen"}, "data"),
        Output("chosen-words", "children"),
        Output("chosen-curve", "options"),
        Output("chosen-tab", "options"),
        inputs={
            "tab": Input("chosen-tab", "value"),
            "curve": Input("chosen-curve", "value"),
            "table_ids": Input("shown", "data"),
            "ticked_ids": Input("ticked", "data"),
            "_": (Input("study-version", "data"), Input("study-epochs", "data")),
            "variant": State("study-variant", "data"),
        },
    )
    def draw_chosen(
        tab: str,
        curve: str | None,
        table_ids: Sequence[str] | None,
        ticked_ids: Sequence[str],
        _: object,
        variant: str,
    ) -> tuple[Any, ...]:
        trials = source.trials(variant)
        names, words = _choose(trials, table_ids, ticked_ids, tab)
        epochs: dict[str, list[Epoch]] = defaultdict(list)
        with source.store() as opened:
            ids = list(names.index)
            spectra = opened.spectra(ids[:MOST_CHOSEN])
            if tab == TABS[1] and spectra:
                metrics: Any = no_update
                figure = figures.spectra({names[id_]: spectra.get(id_) for id_ in ids})
            else:
                by_id = opened.epochs_by_trial(ids)
                for id_ in ids:
                    epochs[names[id_]] += by_id.get(id_, [])
                metrics = labels(figures.curve_metrics(epochs))
                figure = figures.learning_curves(epochs, curve or trials.goal.metric)
        caption = [words, " ", *_compare(ticked_ids, variant)]
        return figure, caption, metrics, TABS[: 1 + bool(spectra)]

    app.clientside_callback(
        ClientsideFunction("view", "open"),
        Output("address", "href", allow_duplicate=True),
        Input({"drawn": "scatter", "as": "graph"}, "clickData"),
        prevent_initial_call=True,
    )


def _compare(ticked_ids: Sequence[str], variant: str) -> list[Any]:
    if not 2 <= len(ticked_ids) <= parts.MOST_COMPARED:
        words = f"Tick two to {parts.MOST_COMPARED} trials to compare them."
        return [words] if ticked_ids else []
    query = urlencode([("study", variant), *(("trial", short_id(id_)) for id_ in ticked_ids)])
    address = get_relative_path(f"/compare?{query}")
    return [dcc.Link(f"Compare these {len(ticked_ids)} side by side", href=address)]


def _choose(
    trials: StudyTrials, table_ids: Sequence[str] | None, ticked_ids: Sequence[str], tab: str
) -> tuple[pd.Series[str], str]:
    """Return the name of the line of each chosen trial, and words about the choice."""
    names, goal = trials.frame["name"], trials.goal
    if ids := list(ticked_ids[:MOST_CHOSEN]):
        return names[ids], f"Shown: {len(ids)} ticked trials."
    frame, words = trials.of(table_ids), "trials{}. Tick trials to show others."
    if tab == TABS[0]:
        frame = frame[~frame["state"].isin(LOST)].groupby("setting").head(MOST_SEEDS)
        names, words = names.map(group_of), MEANS
    order = ""
    if goal.metric in frame:
        order = f" by {title(goal.metric)}"
        values = pd.to_numeric(frame[goal.metric], errors="coerce") * goal.sign(goal.metric)
        means = values.groupby(names).transform("mean")
        frame = frame.loc[means.sort_values(kind="stable").index]
    names = names[frame.index]
    lines = names.unique()[:MOST_BEST]
    return names[names.isin(lines)], f"Shown: the first {len(lines)} {words.format(order)}"


def _head(source: Source, summary: StudySummary) -> list[Any]:
    source.fetch("reports", lambda: source.storage.bring_reports(CARD_FILE))
    key = summary.key
    folder = source.storage.folder / "reports" / key.variant
    card = source.card(key)
    # A user's own study may not be loadable here, but its card has its title and question.
    description: Study | Card | None = card
    if key.study in NAMES:
        description = Variant.read(key.overrides).study(load_study(key.study))
    answer: list[Any] = [
        "There is no report yet. A run writes a report every few minutes and at its end."
    ]
    if card:
        report_time = datetime.fromtimestamp((folder / CARD_FILE).stat().st_mtime, UTC)
        state = f" (as of {card.trials}, {report_time:%Y-%m-%d %H:%M} UTC)"
        text = " ".join(dict.fromkeys((card.answer, card.certainty[0])))
        answer = [text, html.Span(state, className="soft")]
    report: list[Any] = []
    if (folder / REPORT).is_file():
        address = get_relative_path(f"/report/{quote(key.variant)}/{REPORT}")
        report = [html.A("Report", href=address, target="_blank")]
    return [
        html.H1((description and description.title) or key.study),
        html.P(description.question if description else "", className="question"),
        html.P(answer, id="study-answer", className="answer"),
        html.Div(progress([summary], source.overview()), id="study-progress"),
        html.P([*report, *parts.downloads(key)], id="study-links"),
    ]
