"""Two to six trials side by side: their curves, their spectra, and where their configs and numbers
differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from dash import Dash, Input, Output, State, dcc, html, no_update

from orchestrator.analysis import ID_DIGITS
from orchestrator.report import cell, setting, title
from orchestrator.view import figures, parts
from orchestrator.view.one_trial import OneTrial, read_trial
from orchestrator.view.parts import MOST_COMPARED
from orchestrator.view.source import Source
from trainables.errors import UserError


def layout(source: Source, starts: Sequence[str], variant: str) -> Any:
    """The page of the trials whose ids begin so, as those of the study of this variant. Raises
    UserError where they are not two to six that there are."""
    if not 2 <= len(set(starts)) <= MOST_COMPARED:
        raise UserError(
            f"two to {MOST_COMPARED} trials can be compared, and these are {len(set(starts))}: "
            "tick them in a study's table"
        )
    trials = [read_trial(source, start, variant) for start in dict.fromkeys(starts)]
    return html.Div(
        [
            html.H1("Side by side"),
            dcc.Interval(id="compare-tick", interval=parts.LIVE_MS),
            dcc.Store(id="compared", data=[[trial.row["trial_id"] for trial in trials], variant]),
            dcc.Store(id="compare-version"),
            html.P([parts.study_link(trials[0].key), *_downloads(trials)], className="actions"),
            html.Div(id="compare-trouble"),
            html.Div(id="compare-settings"),
            html.H2("Learning curves"),
            parts.graph("compare-curves", "trials"),
            html.H2("Spectra"),
            parts.graph("compare-spectra", "trials"),
            html.H2("Metrics"),
            html.Div(id="compare-metrics"),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Have the page follow its trials."""

    @app.callback(
        Output("compare-trouble", "children"),
        Output("compare-version", "data"),
        Output("compare-settings", "children"),
        Output({"drawn": "compare-curves"}, "data"),
        Output({"drawn": "compare-spectra"}, "data"),
        Output("compare-metrics", "children"),
        Input("compare-tick", "n_intervals"),
        State("compared", "data"),
        State("compare-version", "data"),
    )
    def show(
        _: int | None, compared: tuple[Sequence[str], str], version: str | None
    ) -> tuple[Any, ...]:
        trial_ids, variant = compared
        try:
            trials = [read_trial(source, trial_id, variant) for trial_id in trial_ids]
        except UserError as error:
            return parts.trouble(error), *[no_update] * 5
        now = " ".join(trial.version for trial in trials)
        if now == version:
            return "", *[no_update] * 5
        labelled = _labelled(trials)
        head = ["", *(parts.trial_link(t.row["trial_id"], n, t.key) for n, t in labelled.items())]
        return (
            "",
            now,
            parts.table(head, _settings(trials)),
            figures.learning_curves({name: trial.epochs for name, trial in labelled.items()}),
            figures.spectra({name: trial.spectrum for name, trial in labelled.items()}),
            parts.table(head, _metrics(trials), empty="None of them has metrics yet."),
        )


def _labelled(trials: Sequence[OneTrial]) -> dict[str, OneTrial]:
    """By their names, with the start of the id where several have one name, as in two scales of a
    study."""
    names = [trial.row["name"] for trial in trials]
    return {
        name if names.count(name) == 1 else f"{name} {trial.row['trial_id'][:ID_DIGITS]}": trial
        for name, trial in zip(names, trials, strict=True)
    }


def _settings(trials: Sequence[OneTrial]) -> list[list[Any]]:
    """The states, and a row for each setting that differs."""
    configs = [trial.settings for trial in trials]
    names = dict.fromkeys(name for config in configs for name in config)
    values = {name: [setting(config.get(name)) for config in configs] for name in names}
    states = ["state", *(trial.row["state"] for trial in trials)]
    return [states, *([name, *each] for name, each in values.items() if len(set(each)) > 1)]


def _metrics(trials: Sequence[OneTrial]) -> list[list[Any]]:
    names = dict.fromkeys(name for trial in trials for name in trial.metrics)
    return [
        [title(name), *(cell(name, trial.metrics.get(name)) for trial in trials)] for name in names
    ]


def _downloads(trials: Sequence[OneTrial]) -> list[Any]:
    """Their results as files, if they are shown as trials of one study."""
    if len({trial.key for trial in trials}) > 1:
        return []
    query = urlencode([("trial", trial.row["trial_id"]) for trial in trials])
    address = f"/download/study/{quote(trials[0].key.variant)}"
    return [html.A(form.upper(), href=f"{address}.{form}?{query}") for form in ("csv", "json")]
