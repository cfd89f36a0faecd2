"""Two to six trials side by side: their curves, their spectra, and where their configs and numbers
differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlencode

from dash import Dash, Input, Output, State, dcc, html, no_update

from orchestrator.report import cell, setting, title
from orchestrator.view import curve_figures, parts
from orchestrator.view.figure import Figure
from orchestrator.view.one_trial import OneTrial, read_trial
from orchestrator.view.source import Source
from orchestrator.view.study_chosen import MOST_COMPARED
from trainables.config import flat_values
from trainables.errors import UserError

LACKS = {
    "compare-learning-curves": "None of them has ended an epoch.",
    "compare-spectra": "None of them has a spectrum yet.",
}
"""The graphs, and what is said where there is none."""


def layout(source: Source, starts: Sequence[str], variant: str) -> Any:
    """The page of the trials whose ids begin so, as those of the study of this variant. Raises
    UserError where they are not two to six that there are."""
    if not 2 <= len(set(starts)) <= MOST_COMPARED:
        raise UserError(
            f"two to {MOST_COMPARED} trials can be compared, and these are {len(set(starts))}: "
            f"tick them in a study's "
            "table"
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
            html.Div(id="compare-curves"),
            html.H2("Spectra"),
            dcc.RadioItems(
                ["logarithmic", "linear"], "logarithmic", id="compare-scale", inline=True
            ),
            html.Div(id="compare-sigma"),
            html.H2("Metrics"),
            html.Div(id="compare-metrics"),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Have the page follow its trials."""

    @app.callback(
        Output("compare-settings", "children"),
        Output("compare-curves", "children"),
        Output("compare-sigma", "children"),
        Output("compare-metrics", "children"),
        Output("compare-version", "data"),
        Output("compare-trouble", "children"),
        Input("compare-tick", "n_intervals"),
        Input("compare-scale", "value"),
        Input("picture-format", "value"),
        State("compared", "data"),
        State("compare-version", "data"),
    )
    def show(
        _: int | None, scale: str, form: str, compared: Sequence[Any], before: Any
    ) -> tuple[Any, ...]:
        trial_ids, variant = compared
        try:
            trials = [read_trial(source, trial_id, variant) for trial_id in trial_ids]
        except UserError as error:
            return *[no_update] * 5, parts.trouble(error)
        version = " ".join([*(trial.version for trial in trials), scale, form])
        if before and before["version"] == version:
            return *[no_update] * 5, ""
        figures = _figures(trials, linear=scale == "linear")
        graphs = parts.graphs_again(
            figures, LACKS, form=form, shown=before["graphs"] if before else {}
        )
        now = {"version": version, "graphs": parts.axes_of(figures)}
        head = ["", *_names(trials)]
        metrics = parts.table(head, _metrics(trials), empty="None of them has metrics yet.")
        return parts.table(head, _settings(trials)), *graphs, metrics, now, ""


def _names(trials: Sequence[OneTrial]) -> list[Any]:
    """Links to the trials' pages."""
    labelled = _labelled(trials).items()
    return [parts.trial_link(trial.row["trial_id"], label, trial.key) for label, trial in labelled]


def _figures(trials: Sequence[OneTrial], *, linear: bool) -> dict[str, Figure]:
    """By the names of their graphs, those that the trials have something for."""
    labelled = _labelled(trials)
    curves = {label: trial.epochs for label, trial in labelled.items() if trial.epochs}
    sigma = {
        label: trial.spectrum for label, trial in labelled.items() if trial.spectrum is not None
    }
    return {
        **({"compare-learning-curves": curve_figures.learning_curves(curves)} if curves else {}),
        **({"compare-spectra": curve_figures.spectra(sigma, linear=linear)} if sigma else {}),
    }


def _labelled(trials: Sequence[OneTrial]) -> dict[str, OneTrial]:
    """By their names, with the start of the id where several have one name, as in two scales of a
    study."""
    names = [trial.row["name"] for trial in trials]
    return {
        name
        if names.count(name) == 1
        else f"{name} {trial.row['trial_id'][: parts.SHORT_ID]}": trial
        for name, trial in zip(names, trials, strict=True)
    }


def _settings(trials: Sequence[OneTrial]) -> list[list[Any]]:
    """The states, and a row for each setting that differs."""
    configs = [flat_values(trial.row["config"]) for trial in trials]
    names = dict.fromkeys(name for config in configs for name in config)
    different = [
        name
        for name in names
        if any(config.get(name) != configs[0].get(name) for config in configs)
    ]
    states = ["state", *(trial.row["state"] for trial in trials)]
    return [
        states,
        *([name, *(setting(config.get(name)) for config in configs)] for name in different),
    ]


def _metrics(trials: Sequence[OneTrial]) -> list[list[Any]]:
    names = dict.fromkeys(name for trial in trials for name in trial.metrics)
    return [
        [title(name), *(cell(name, trial.metrics.get(name)) for trial in trials)] for name in names
    ]


def _downloads(trials: Sequence[OneTrial]) -> list[Any]:
    """Where one study has all of them, that which they are shown as those of before others, their
    results as files."""
    key = next(
        (
            key
            for key in (trials[0].key, *trials[0].keys)
            if all(key in trial.keys for trial in trials)
        ),
        None,
    )
    if key is None:
        return []
    query = urlencode([("trial", trial.row["trial_id"]) for trial in trials])
    address = f"/download/study/{quote(key.variant)}"
    return [html.A(form.upper(), href=f"{address}.{form}?{query}") for form in ("csv", "json")]
