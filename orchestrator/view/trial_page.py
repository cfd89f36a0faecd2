"""A trial's page: what it is, how it learned, what it measured, where it ran, and how to run it
alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import Dash, Input, Output, State, dcc, html, no_update

from orchestrator.analysis import ID_DIGITS
from orchestrator.report import CONFIG_FILE, RUN_ALONE, cell, setting, title
from orchestrator.store import Attempt
from orchestrator.view import figures, parts
from orchestrator.view.one_trial import OneTrial, read_trial
from orchestrator.view.source import Source
from orchestrator.words import duration
from trainables.errors import UserError

CONTEXTS = ("context", "next", "likeliest")
OPTIONS = (
    "with --layers FILE for an output layer of your own, --data-dir DIR for texts that lie "
    "elsewhere, and --device cuda for a GPU."
)


def layout(source: Source, start: str, variant: str) -> Any:
    """The page of the trial whose id begins so, as one of the study of this variant. Raises
    UserError if there is none, or several."""
    trial_id, _ = source.trial(start)
    file = trial_id[:ID_DIGITS]
    return html.Div(
        [
            dcc.Interval(id="trial-tick", interval=parts.LIVE_MS),
            dcc.Store(id="trial-id", data=[trial_id, variant]),
            dcc.Store(id="trial-version"),
            html.Div(id="trial-trouble"),
            html.Div(id="trial"),
            html.Div(parts.stop_button(trial_id, "Stop this trial"), id="trial-stop", hidden=True),
            html.H2("Learning curve"),
            parts.graph("trial-curve", file),
            html.H2("Singular values"),
            parts.graph("trial-sigma", file),
            html.Div(id="trial-rest"),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Have the page follow its trial."""

    @app.callback(
        Output("trial-trouble", "children"),
        Output("trial-version", "data"),
        Output("trial", "children"),
        Output("trial-stop", "hidden"),
        Output({"drawn": "trial-curve"}, "data"),
        Output({"drawn": "trial-sigma"}, "data"),
        Output("trial-rest", "children"),
        Input("trial-tick", "n_intervals"),
        State("trial-id", "data"),
        State("trial-version", "data"),
    )
    def show(_: int | None, trial_id: Sequence[str], version: str | None) -> tuple[Any, ...]:
        try:
            trial = read_trial(source, *trial_id)
        except UserError as error:
            return parts.trouble(error), *[no_update] * 6
        if trial.version == version:
            return "", *[no_update] * 6
        tolerance = trial.row["metrics"].get("press_tolerance")
        return (
            "",
            trial.version,
            _head(trial),
            trial.row["state"] != "running",
            figures.trial_curve(trial.epochs),
            figures.spectra({trial.row["name"]: trial.spectrum}, tolerance),
            _rest(trial),
        )


def _head(trial: OneTrial) -> parts.Children:
    """What it is, and its config."""
    row = trial.row
    last = trial.attempts[-1] if trial.attempts else None
    place = last.place if last and last.ended_at is None and row["state"] == "running" else ""
    return [
        html.H1(row["name"]),
        html.P(html.Code(row["trial_id"]), className="soft"),
        parts.facts(
            [
                ("state", row["state"]),
                ("attempts", row["attempt"]),
                *([("runs on", place)] if place else []),
                *([("run from", parts.host_of(row["owner"]))] if row["owner"] else []),
                ("studies", html.Ul([html.Li(parts.study_link(key)) for key in trial.keys])),
            ]
        ),
        *([html.P(row["cause"], className="trouble")] if row["cause"] else []),
        html.H2("Config"),
        parts.table(
            ["differs between the study's trials", "value"],
            _settings(trial, [*trial.varying]),
            empty="The study's other trials have the same config but for the seed.",
        ),
        html.Details(
            [
                html.Summary("All settings"),
                parts.table(["setting", "value"], _settings(trial, [*trial.settings])),
            ]
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
    config = f"/download/trial/{trial.row['trial_id'][:ID_DIGITS]}.json"
    return [
        html.H2("Metrics"),
        parts.facts(
            [(title(name), cell(name, value)) for name, value in trial.metrics.items()],
            empty="It has no metrics.",
        ),
        *([html.H2("Likeliest next words"), parts.table(CONTEXTS, words)] if words else []),
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
        html.P(["Save ", html.A("its config", href=config), f" as {CONFIG_FILE} and type"]),
        html.Pre(RUN_ALONE, className="command"),
        html.P(OPTIONS, className="soft"),
    ]


def _attempt(attempt: Attempt) -> list[Any]:
    """A row of the table; only a result is an end without a cause."""
    start = f"{attempt.started_at:%Y-%m-%d %H:%M:%S}"
    if not attempt.ended_at:
        return [attempt.number, attempt.place, start, "", "it goes on"]
    took = duration((attempt.ended_at - attempt.started_at).total_seconds())
    return [attempt.number, attempt.place, start, took, attempt.cause or "done"]


def _settings(trial: OneTrial, names: Sequence[str]) -> list[list[str]]:
    return [[name, setting(trial.settings.get(name))] for name in names]
