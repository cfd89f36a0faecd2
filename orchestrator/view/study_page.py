"""A study's page: a scatter of one's choice, the table under it, curves and spectra of the chosen trials, maps."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import quote

from dash import Dash, Input, Output, State, dcc, html, no_update

from orchestrator.report import title
from orchestrator.store import COMPLETE, LOST, StudyKey, TrialState
from orchestrator.view import figures, parts, study_chosen, trial_grid
from orchestrator.view.source import Source
from orchestrator.view.table import StudyTable
from orchestrator.words import duration
from search_spaces.catalog import NAMES, load_study
from search_spaces.study import Correlation, Study
from trainables.errors import UserError

AXES = ("x", "y", "colour", "size")
REPORT = "report.html"
ANSWER_MS = 1_000


def layout(source: Source, variant: str) -> Any:
    """The page of the study of this variant. Raises UserError where there is none."""
    key = source.key(variant)
    study, table = built_in(key), source.table(key)
    choices = first_choices(study, table)
    return html.Div(
        [
            dcc.Interval(id="study-tick", interval=parts.LIVE_MS),
            # The answer is work, and waits until the page is there.
            dcc.Interval(id="answer-tick", interval=ANSWER_MS, max_intervals=1),
            dcc.Store(id="study-variant", data=variant),
            dcc.Store(id="study-version", data=_version(table)),
            html.H1((study and study.title) or key.study),
            html.P(variant_words(key), className="variant"),
            *([html.P(study.question, className="question")] if study and study.question else []),
            html.Div(id="study-answer", className="answer"),
            html.Div(id="study-progress"),
            html.Div([*_links(source, key), _stop_study()], className="actions"),
            html.P(id="study-stopped", role="status"),
            html.Div([_choice(name, table, choices[name]) for name in AXES], className="controls"),
            parts.graph("scatter", figures.empty("No trial is done yet.")),
            html.P(
                "Click a point to open its trial; drag a box to have the table show only what is in it.",
                className="soft",
            ),
            html.Div(trial_grid.layout(table), id="study-grid"),
            study_chosen.layout(table, study),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Have the page follow the store and its reader."""
    _register_live(app, source)
    _register_stop(app, source)
    trial_grid.register(app, source)
    study_chosen.register(app, source)

    @app.callback(
        Output("scatter", "figure"),
        Output("scatter", "config"),
        *(Input(f"study-{name}", "value") for name in AXES),
        Input("study-version", "data"),
        Input("picture-format", "value"),
        State("study-variant", "data"),
    )
    def draw(
        x: str | None, y: str | None, colour: str | None, size: str | None, _: str, form: str, variant: str
    ) -> tuple[Any, Any]:
        table = source.table(source.key(variant))
        config = parts.graph_config(form, f"{variant}-scatter")
        if x is None or y is None:
            return figures.empty("No trial is done yet."), config
        return figures.scatter(table, x, y, colour, size), config

    @app.callback(
        Output("address", "href", allow_duplicate=True), Input("scatter", "clickData"), prevent_initial_call=True
    )
    def open_trial(click: Mapping[str, Any] | None) -> Any:
        return parts.trial_address(click["points"][0]["customdata"]) if click else no_update


def _register_live(app: Dash, source: Source) -> None:
    @app.callback(
        Output("study-progress", "children"),
        Output("study-stop-place", "hidden"),
        Output("study-version", "data"),
        *(Output(f"study-{name}", "options") for name in AXES),
        *(Output(f"study-{name}", "value") for name in AXES),
        Input("study-tick", "n_intervals"),
        State("study-variant", "data"),
        State("study-version", "data"),
        *(State(f"study-{name}", "value") for name in AXES),
    )
    def follow(_: int | None, variant: str, version: str, *values: str | None) -> tuple[Any, ...]:
        unchanged = (no_update,) * (1 + 2 * len(AXES))
        try:
            key = source.key(variant)
            table, counts = source.table(key), _counts(source, key)
            progress = (_progress(source, key, counts), not counts["running"])
        except UserError as error:
            return (parts.trouble(str(error)), True, *unchanged)
        if _version(table) == version:
            return (*progress, *unchanged)
        first = first_choices(built_in(key), table)
        # With the first result come the first numbers that an axis can have.
        chosen = [value if value in table.numeric else first[name] for name, value in zip(AXES, values, strict=True)]
        return (*progress, _version(table), *([_options(table)] * len(AXES)), *chosen)

    @app.callback(
        Output("study-answer", "children"),
        Input("answer-tick", "n_intervals"),
        State("study-variant", "data"),
        prevent_initial_call=True,
    )
    def answer(_: int, variant: str) -> Any:
        with suppress(UserError):
            return source.answers(source.key(variant)).headline
        return ""


def _register_stop(app: Dash, source: Source) -> None:
    @app.callback(
        Output("study-stopped", "children"),
        Input("study-stop", "submit_n_clicks"),
        State("study-variant", "data"),
        prevent_initial_call=True,
    )
    def stop(_: int, variant: str) -> Any:
        try:
            key = source.key(variant)
            with source.store() as opened:
                opened.ask_to_stop(key)
        except UserError as error:
            return str(error)
        return "The study was asked to stop; results and checkpoints are kept, and the same command goes on."


def built_in(key: StudyKey) -> Study | None:
    """The study's description, which only a built-in one has here: a user's own lies in a file."""
    return load_study(key.study) if key.study in NAMES else None


def variant_words(key: StudyKey) -> str:
    """ "gss_grid, scale quick, corpus pydocs, with {...}"."""
    settings = "" if key.overrides == "{}" else f", with {key.overrides}"
    return f"{key.study}, scale {key.scale}, corpus {key.corpus}{settings}"


def first_choices(study: Study | None, table: StudyTable) -> dict[str, str | None]:
    """What the scatter shows at first: what the study asks for, or the first numbers that there are."""
    asked = next((request for request in (study.analyses if study else ()) if isinstance(request, Correlation)), None)
    settings = [name for name in table.settings if name in table.numeric and name != "seed"]
    metrics = [name for name in table.metrics if name in table.numeric]
    x = _first(table, asked.x if asked else "", "press_rank", "entropy_rank", *settings, *metrics)
    y = _first(table, asked.y if asked else "", "test_perplexity", "valid_perplexity", *metrics)
    return {"x": x if y else None, "y": y, "colour": next(iter(reversed(settings)), None), "size": None}


def _first(table: StudyTable, *names: str) -> str | None:
    return next((name for name in names if name in table.numeric), None)


def _choice(name: str, table: StudyTable, value: str | None) -> Any:
    optional = name in ("colour", "size")
    menu = dcc.Dropdown(_options(table), value, id=f"study-{name}", clearable=optional)
    return html.Label([html.Span(name), menu])


def _options(table: StudyTable) -> list[dict[str, str]]:
    return [{"label": title(name), "value": name} for name in table.numeric]


def _links(source: Source, key: StudyKey) -> list[Any]:
    files = [html.A(form.upper(), href=f"/download/study/{quote(key.variant)}.{form}") for form in ("csv", "json")]
    with suppress(UserError):
        source.storage.bring_reports(REPORT)
    if (source.storage.folder / "reports" / key.variant / REPORT).is_file():
        files.insert(0, html.A("Report", href=f"/report/{quote(key.variant)}/{REPORT}", target="_blank"))
    return files


def _stop_study() -> Any:
    question = "Stop the study? Results and checkpoints are kept, and the same command goes on."
    return html.Span(parts.stop_button("study-stop", "Stop this study", question), id="study-stop-place", hidden=True)


def _counts(source: Source, key: StudyKey) -> Mapping[TrialState, int]:
    return next(summary.counts for summary in source.overview().studies if summary.key == key)


def _progress(source: Source, key: StudyKey, counts: Mapping[TrialState, int]) -> Any:
    lost, left = sum(counts[state] for state in LOST), source.overview().seconds_left.get(key)
    done = sum(counts[state] for state in COMPLETE)
    words = [f"{done:,} of {sum(counts.values()):,} trials done"]
    words += [f"{counts['running']} running"] if counts["running"] else []
    words += [f"{lost} without a result"] if lost else []
    words += [f"about {duration(left)} left"] if left is not None else []
    return html.P(", ".join(words), className="progress")


def _version(table: StudyTable) -> str:
    """Another text for another table."""
    return format(hash(frozenset(table.versions.items())), "x")
