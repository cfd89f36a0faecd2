"""The page of one trial, or of two to six side by side."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dash import Dash, Input, Output, State, dcc, html
from dash.exceptions import PreventUpdate

from orchestrator.report import cell, setting
from orchestrator.store import Attempt
from orchestrator.view import figures, parts
from orchestrator.view.axes import labels
from orchestrator.view.one_trial import OneTrial, read_trial
from orchestrator.view.source import Source
from orchestrator.words import duration, short_id
from trainables.errors import UserError

CONFIG_FILE = "trial.json"
RUN_ALONE = f"python -m trainables {CONFIG_FILE} --directory trial"
OPTIONS = (
    "Add --code FILE for your own code, --data-dir DIR for texts in another folder, "
    "or --device cuda for a GPU."
)


def layout(source: Source, starts: Sequence[str], variant: str) -> Any:
    """Return the page of one to six trials whose ids begin with `starts`.

    `variant` is the study in whose context they are shown. Raises UserError for another number of
    trials, or an unknown one.
    """
    trial_ids = [source.trial(start)[0] for start in dict.fromkeys(starts)]
    if not 1 <= len(trial_ids) <= parts.MOST_COMPARED:
        raise UserError(
            f"two to {parts.MOST_COMPARED} trials can be compared, not "
            f"{len(trial_ids)}. Tick them in a study's table."
        )
    file = short_id(trial_ids[0]) if len(trial_ids) == 1 else "trials"
    return html.Div(
        [
            dcc.Interval(id="trials-tick", interval=parts.LIVE_MS),
            dcc.Store(id="trials-asked", data=[trial_ids, variant]),
            dcc.Store(id="trials-version"),
            html.Div(id="trials-head"),
            html.Div(
                parts.stop_button(trial_ids[0], "Stop this trial"), id="trial-stop", hidden=True
            ),
            html.H2("Learning curves"),
            parts.graph("curves", file),
            html.H2("Spectra"),
            parts.graph("spectra", file),
            html.Div(id="trials-rest"),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Register the page's callbacks."""

    @app.callback(
        Output("trials-version", "data"),
        Output("trials-head", "children"),
        Output("trial-stop", "hidden"),
        Output({"drawn": "curves"}, "data"),
        Output({"drawn": "spectra"}, "data"),
        Output("trials-rest", "children"),
        Input("trials-tick", "n_intervals"),
        State("trials-asked", "data"),
        State("trials-version", "data"),
    )
    def show(
        _: int | None, request: tuple[Sequence[str], str], version: str | None
    ) -> tuple[Any, ...]:
        trial_ids, variant = request
        trials = _by_name([read_trial(source, trial_id, variant) for trial_id in trial_ids])
        new_version = " ".join(trial.version for trial in trials.values())
        if new_version == version:
            raise PreventUpdate
        first, *others = trials.values()
        return (
            new_version,
            _head(trials),
            bool(others) or first.row["state"] != "running",
            figures.learning_curves(
                {name: trial.epochs for name, trial in trials.items()}, related=not others
            ),
            figures.spectra(
                {name: trial.spectrum for name, trial in trials.items()},
                None if others else first.row["metrics"].get("press_tolerance"),
            ),
            [*_metrics(trials), *([] if others else _single_trial(first))],
        )


def _by_name(trials: Sequence[OneTrial]) -> dict[str, OneTrial]:
    names = [trial.row["name"] for trial in trials]
    return {
        name if names.count(name) == 1 else f"{name} {short_id(trial.row['trial_id'])}": trial
        for name, trial in zip(names, trials, strict=True)
    }


def _table(
    trials: Mapping[str, OneTrial],
    column: Callable[[OneTrial], Mapping[str, str]],
    *,
    complete: bool = False,
) -> Any:
    columns = [column(trial) for trial in trials.values()]
    names = dict.fromkeys(name for values in columns for name in values)
    rows = [[name, *(values.get(name, "") for values in columns)] for name in names]
    if not complete and len(columns) > 1:
        rows = [row for row in rows if len({*row[1:]}) > 1]
    links = [
        parts.trial_link(trial.row["trial_id"], name, trial.key) for name, trial in trials.items()
    ]
    return parts.table(["", *links], rows, empty="No difference." if names else "No values yet.")


def _head(trials: Mapping[str, OneTrial]) -> parts.Children:
    first, ids = next(iter(trials.values())), [trial.row["trial_id"] for trial in trials.values()]
    links = [*map(parts.study_link, first.keys), *parts.downloads(first.key, ids)]
    return [
        html.H1("Side by side" if len(trials) > 1 else [*trials]),
        html.P(links, className="actions"),
        _table(trials, lambda trial: trial.facts),
        html.H2("Settings that differ in the study"),
        _table(trials, lambda trial: _settings(trial, trial.varying_settings)),
        html.Details(
            [
                html.Summary("All settings"),
                _table(trials, lambda trial: _settings(trial, trial.settings), complete=True),
            ]
        ),
    ]


def _settings(trial: OneTrial, names: Iterable[str]) -> dict[str, str]:
    return {name: setting(trial.settings.get(name)) for name in names}


def _metrics(trials: Mapping[str, OneTrial]) -> parts.Children:
    titles = labels([*dict.fromkeys(name for trial in trials.values() for name in trial.metrics)])

    def metrics(trial: OneTrial) -> dict[str, str]:
        return {titles[name]: cell(name, value) for name, value in trial.metrics.items()}

    return [
        html.H2("Metrics"),
        _table(trials, metrics, complete=True),
        html.H2("Environment"),
        _table(trials, lambda trial: trial.row["environment"]),
    ]


def _single_trial(trial: OneTrial) -> parts.Children:
    words = [
        [
            prediction.context or name.partition(" ")[2],
            prediction.next,
            " · ".join(f"{word} {share:.0%}" for word, share in prediction.top),
        ]
        for name, prediction in trial.predictions.items()
    ]
    contexts = parts.table(["context", "next", "most likely"], words)
    config = f"data:application/json,{quote(json.dumps(trial.row['config'], indent=1))}"
    return [
        *([html.H2("Most likely next words"), contexts] if words else []),
        html.H2("Attempts"),
        parts.table(
            ["attempt", "worker", "started (UTC)", "duration", "end"],
            [_attempt(attempt) for attempt in trial.attempts],
            empty="No worker has started this trial, or its attempts were not recorded.",
        ),
        html.H2("Log"),
        html.Div(html.Pre(trial.log or "This storage has no log of this trial."), className="log"),
        html.H2("Run this trial alone"),
        html.P(
            [
                "Save ",
                html.A("its config", href=config, download=CONFIG_FILE),
                f" as {CONFIG_FILE} and run:",
            ]
        ),
        html.Pre(RUN_ALONE, className="command"),
        html.P(OPTIONS, className="soft"),
    ]


def _attempt(attempt: Attempt) -> list[Any]:
    row = [attempt.number, attempt.host, f"{attempt.started_at:%Y-%m-%d %H:%M:%S}"]
    if not attempt.ended_at:
        return [*row, "", "running"]
    # An attempt that ended without a cause has a result.
    elapsed = duration((attempt.ended_at - attempt.started_at).total_seconds())
    return [*row, elapsed, attempt.cause or "done"]
