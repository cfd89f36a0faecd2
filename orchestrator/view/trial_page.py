"""A trial's page: what it is, how it learned, what it measured, where it ran, and how to run it
alone."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update

from orchestrator.report import CONFIG_FILE, RUN_ALONE, cell, setting, title
from orchestrator.store import Attempt
from orchestrator.view import curve_figures, parts
from orchestrator.view.figure import Figure
from orchestrator.view.one_trial import OneTrial, read_trial
from orchestrator.view.source import Source
from orchestrator.words import duration
from trainables.errors import UserError

LACKS = {
    "trial-curve": "No epoch has ended yet, or this trial trains none.",
    "trial-sigma": "It has no spectrum.",
}
"""The graphs, and what is said where there is none."""


def layout(source: Source, start: str, variant: str) -> Any:
    """The page of the trial whose id begins so, as one of the study of this variant. Raises
    UserError where there is none, or several."""
    trial_id, _ = source.trial(start)
    return html.Div(
        [
            dcc.Interval(id="trial-tick", interval=parts.LIVE_MS),
            dcc.Store(id="trial-id", data=[trial_id, variant]),
            dcc.Store(id="trial-version"),
            html.Div(id="trial-trouble"),
            html.P(id="trial-stopped", role="status"),
            html.Div(id="trial"),
            html.H2("Learning curve"),
            html.Div(id="trial-curve-place"),
            html.H2("Singular values"),
            dcc.RadioItems(["logarithmic", "linear"], "logarithmic", id="trial-scale", inline=True),
            html.Div(id="trial-spectrum"),
            html.Div(id="trial-rest"),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Have the page follow its trial."""

    @app.callback(
        Output("trial", "children"),
        Output("trial-curve-place", "children"),
        Output("trial-spectrum", "children"),
        Output("trial-rest", "children"),
        Output("trial-version", "data"),
        Output("trial-trouble", "children"),
        Input("trial-tick", "n_intervals"),
        Input("trial-scale", "value"),
        Input("picture-format", "value"),
        State("trial-id", "data"),
        State("trial-version", "data"),
    )
    def show(
        _: int | None, scale: str, form: str, trial_id: Sequence[str], before: Any
    ) -> tuple[Any, ...]:
        try:
            trial = read_trial(source, *trial_id)
        except UserError as error:
            return *[no_update] * 5, parts.trouble(error)
        version = f"{trial.version} {scale} {form}"
        if before and before["version"] == version:
            return *[no_update] * 5, ""
        figures = _figures(trial, linear=scale == "linear")
        file = f"{trial.row['trial_id'][: parts.SHORT_ID]}-"
        shown = before["graphs"] if before else {}
        graphs = parts.graphs_again(figures, LACKS, form=form, shown=shown, file=file)
        return (
            _head(trial),
            *graphs,
            _rest(trial),
            {"version": version, "graphs": parts.axes_of(figures)},
            "",
        )

    @app.callback(
        Output("trial-stopped", "children"),
        Input("trial-stop", "submit_n_clicks"),
        State("trial-id", "data"),
        prevent_initial_call=True,
    )
    def stop(clicks: int | None, trial_id: Sequence[str]) -> Any:
        if not clicks:
            return no_update
        try:
            with source.store() as opened:
                opened.ask_to_stop(trial_id[0])
        except UserError as error:
            return parts.sentence_of(error)
        return "The trial was asked to stop; its checkpoint is kept, and the next run of the study goes on from it."


def _figures(trial: OneTrial, *, linear: bool) -> dict[str, Figure]:
    """By the names of their graphs, those that the trial has something for."""
    figures = {"trial-curve": curve_figures.trial_curve(trial.epochs)} if trial.epochs else {}
    if trial.spectrum is not None:
        tolerance = trial.row["metrics"].get("press_tolerance")
        sigma = {trial.row["name"]: trial.spectrum}
        figures["trial-sigma"] = curve_figures.spectra(sigma, linear=linear, tolerance=tolerance)
    return figures


def _head(trial: OneTrial) -> parts.Children:
    """What it is, and its config."""
    row = trial.row
    running = row["state"] == "running"
    stop = parts.stop_button(
        "trial-stop", "Stop this trial", "Stop this trial? Its checkpoint is kept."
    )
    last = trial.attempts[-1] if trial.attempts else None
    where = last.place if running and last and last.ended_at is None else ""
    return [
        html.H1(row["name"]),
        html.P(html.Code(row["trial_id"]), className="soft"),
        parts.facts(
            [
                ("state", row["state"]),
                ("attempts", row["attempt"]),
                *([("runs on", where)] if where else []),
                *([("run from", parts.host_of(row["owner"]))] if row["owner"] else []),
                ("studies", html.Ul([html.Li(parts.study_link(key)) for key in trial.keys])),
            ]
        ),
        *([html.P(row["cause"], className="trouble")] if row["cause"] else []),
        *([stop] if running else []),
        html.H2("Config"),
        parts.table(
            ["differs between the study's trials", "value"],
            [[name, setting(value)] for name, value in trial.different.items()],
            empty="The study's other trials have the same config but for the seed.",
        ),
        html.Details(
            [html.Summary("All settings"), parts.table(["setting", "value"], _settings(trial.same))]
        ),
    ]


def _rest(trial: OneTrial) -> parts.Children:
    words = [
        [
            after.context or name.partition(" ")[2],
            after.next,
            " · ".join(f"{word} {share:.0%}" for word, share in after.top),
        ]
        for name, after in trial.predictions.items()
    ]
    return [
        html.H2("Metrics"),
        parts.facts(
            [(title(name), cell(name, value)) for name, value in trial.metrics.items()],
            empty="It has no metrics.",
        ),
        *(
            [html.H2("Likeliest next words"), parts.table(["context", "next", "likeliest"], words)]
            if words
            else []
        ),
        html.H2("Environment"),
        parts.facts(
            list(trial.environment.items()),
            empty="It is recorded with the result, and there is none.",
        ),
        html.H2("Attempts"),
        parts.table(
            ["attempt", "on", "taken up (UTC)", "took", "ended by"],
            [_attempt(attempt) for attempt in trial.attempts],
            empty="No worker has taken it up yet, or none whose attempts were remembered.",
        ),
        html.H2("Log"),
        html.Div(html.Pre(trial.log), className="log")
        if trial.log
        else html.P("There is none in this storage.", className="soft"),
        html.H2("Run it alone"),
        html.P(
            [
                "Save ",
                html.A(
                    "its config",
                    href=f"/download/trial/{trial.row['trial_id'][: parts.SHORT_ID]}.json",
                ),
                " as ",
                html.Code(CONFIG_FILE),
                " and type",
            ]
        ),
        html.Pre(RUN_ALONE, className="command"),
        html.P(
            [
                "with ",
                html.Code("--layers FILE"),
                " for an output layer of your own, ",
                html.Code("--data-dir DIR"),
                " for texts that lie elsewhere, and ",
                html.Code("--device cuda"),
                " for a GPU.",
            ],
            className="soft",
        ),
    ]


def _attempt(attempt: Attempt) -> list[Any]:
    """A row of the table; only a result is an end without a cause."""
    took = (
        duration((attempt.ended_at - attempt.started_at).total_seconds())
        if attempt.ended_at
        else ""
    )
    end = attempt.cause or ("done" if attempt.ended_at else "it goes on")
    return [attempt.number, attempt.place, f"{attempt.started_at:%Y-%m-%d %H:%M:%S}", took, end]


def _settings(settings: Mapping[str, Any]) -> list[list[str]]:
    return [
        [name, setting(value) if not isinstance(value, list) else json.dumps(value)]
        for name, value in settings.items()
    ]
