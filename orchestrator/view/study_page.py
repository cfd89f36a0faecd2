"""A study's page: a scatter of one's choice, the table under it, curves and spectra of the chosen
trials, maps."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from dash import Dash, Input, Output, State, ctx, dcc, html, no_update

from orchestrator.report import CARD_FILE, Card, blown_up, read_card
from orchestrator.storage import is_url
from orchestrator.store import LOST, StudyKey
from orchestrator.variants import Variant
from orchestrator.view import choices, parts, rows, study_chosen, study_figures, trial_grid
from orchestrator.view.choices import AXES, CLEARABLE, MAP
from orchestrator.view.figure import Figure, empty
from orchestrator.view.source import Overview, Source
from orchestrator.view.table import StudyTable
from orchestrator.words import counted, duration
from search_spaces.catalog import NAMES, load_study
from search_spaces.study import Study
from trainables.errors import UserError

REPORT = "report.html"


def layout(source: Source, variant: str) -> Any:
    """The page of the study of this variant. Raises UserError where there is none."""
    key = source.key(variant)
    study, table = built_in(key), source.table(key)
    heading, question = _heading(source, key)
    first = choices.first_axes(study, table)
    scatter = study_figures.scatter(table, first)
    epochs = _epochs(source.overview(), key)
    followed = {
        "version": table.version,
        "epochs": epochs,
        "answered": None,
        "form": "png",
        "y": first["y"],
    }
    return html.Div(
        [
            dcc.Interval(id="study-tick", interval=parts.LIVE_MS),
            dcc.Store(id="study-variant", data=variant),
            dcc.Store(id="study-version", data=table.version),
            dcc.Store(id="study-epochs", data=epochs),
            dcc.Store(id="study-answered"),
            dcc.Store(
                id="study-drawn", data=[_drawn(first, (), {}, table.version, "png"), _axes(scatter)]
            ),
            html.H1(heading, id="study-heading"),
            html.P(parts.variant_words(key), className="variant"),
            html.P(question, id="study-question", className="question"),
            html.Div(_finding(source, key), id="study-answer", className="answer"),
            html.Div(id="study-progress"),
            html.Div(
                [html.Span(_links(source, key), id="study-links"), _stop_study()],
                className="actions",
            ),
            html.P(id="study-stopped", role="status"),
            html.Div(
                [*(_choice(name, table, first[name], variant) for name in AXES), _scales()],
                className="controls",
            ),
            parts.graph("scatter", scatter, config=parts.graph_config("png", f"{variant}-scatter")),
            html.P(
                "A point a trial: click it to open its page, drag a box to have the table show "
                "only what is in it.",
                className="soft",
            ),
            html.Div(trial_grid.layout(table), id="study-grid"),
            study_chosen.layout(source, key, {**choices.first_map(study, table), **followed}),
        ]
    )


def register(app: Dash, source: Source) -> None:
    """Have the page follow the store and its reader."""
    _register_live(app, source)
    _register_answer(app, source)
    _register_stop(app, source)
    trial_grid.register(app, source)
    study_chosen.register(app, source)

    @app.callback(
        Output("scatter", "figure"),
        Output("scatter", "config"),
        Output("study-drawn", "data"),
        inputs={
            "axes": {name: Input(f"study-{name}", "value") for name in AXES},
            "logarithmic": Input("study-scales", "value"),
            "_": Input("study-version", "data"),
            "form": Input("picture-format", "value"),
            "filters": Input("trials", "filterModel"),
            "brushed": State("brushed", "data"),
            "variant": State("study-variant", "data"),
            "drawn": State("study-drawn", "data"),
        },
    )
    def draw(
        axes: Mapping[str, str | None],
        logarithmic: list[str],
        _: str,
        form: str,
        filters: Mapping[str, rows.Filter] | None,
        brushed: list[str],
        variant: str,
        drawn: Sequence[str] | None,
    ) -> tuple[Any, Any, Any]:
        config = parts.graph_config(form, f"{variant}-scatter")
        try:
            table = source.table(source.key(variant))
        except UserError as error:
            if (
                ctx.triggered_id == "study-version"
            ):  # no choice of the reader's: what is drawn may stay
                return no_update, no_update, no_update
            return empty(parts.sentence_of(error)), config, None
        # A box filters the table and leaves the points around it where they are.
        typed = {name: wanted for name, wanted in (filters or {}).items() if name not in brushed}
        now = _drawn(axes, logarithmic, typed, table.version, form)
        drawn_before, axes_before = drawn or ("", "")
        if now == drawn_before:
            return no_update, no_update, no_update
        figure = study_figures.scatter(table, axes, logarithmic, rows.chosen(table, typed))
        shown = parts.change_to(figure) if _axes(figure) == axes_before else figure
        return shown, config, [now, _axes(figure)]

    @app.callback(
        Output("address", "href", allow_duplicate=True),
        Input("scatter", "clickData"),
        State("study-variant", "data"),
        prevent_initial_call=True,
    )
    def open_trial(click: Mapping[str, Any] | None, variant: str) -> Any:
        return (
            parts.trial_address(click["points"][0]["customdata"], variant) if click else no_update
        )


def _register_live(app: Dash, source: Source) -> None:
    @app.callback(
        output={
            "heading": Output("study-heading", "children"),
            "question": Output("study-question", "children"),
            "links": Output("study-links", "children"),
            "progress": Output("study-progress", "children"),
            "not_running": Output("study-stop-place", "hidden"),
            "version": Output("study-version", "data"),
            "epochs": Output("study-epochs", "data"),
            "options": {name: Output(f"study-{name}", "options") for name in AXES},
            "values": {name: Output(f"study-{name}", "value") for name in AXES},
            "map_options": {name: Output(f"map-{name}", "options") for name in MAP},
            "map_values": {name: Output(f"map-{name}", "value") for name in MAP},
        },
        inputs={
            "_": Input("study-tick", "n_intervals"),
            "variant": State("study-variant", "data"),
            "shown": {
                "version": State("study-version", "data"),
                "epochs": State("study-epochs", "data"),
                "values": {name: State(f"study-{name}", "value") for name in AXES},
                "map_values": {name: State(f"map-{name}", "value") for name in MAP},
            },
        },
    )
    def follow(_: int | None, variant: str, shown: Mapping[str, Any]) -> dict[str, Any]:
        kept: dict[str, Any] = {
            **dict.fromkeys(
                ("heading", "question", "links", "not_running", "version", "epochs"), no_update
            ),
            **dict.fromkeys(("options", "values"), dict.fromkeys(AXES, no_update)),
            **dict.fromkeys(("map_options", "map_values"), dict.fromkeys(MAP, no_update)),
        }
        try:
            return {**kept, **_news(source, source.key(variant), shown)}
        except UserError as error:
            # Of no version, all is drawn again once the store can be read: trouble may stand in
            # place of some.
            return {
                **kept,
                "progress": parts.trouble(error),
                "version": "" if shown["version"] else no_update,
            }


def _news(source: Source, key: StudyKey, shown: Mapping[str, Any]) -> dict[str, Any]:
    """What of the page is another than is shown, or may be. Raises UserError where the store cannot
    be read."""
    table, overview = source.table(key), source.overview()
    heading, question = _heading(source, key)
    news = {
        "heading": heading,
        "question": question,
        "links": _links(source, key),
        "progress": _progress(source, key),
        "not_running": not overview.of(key).counts["running"],
    }
    # An answer of equal epochs would have the curves drawn again at every tick.
    if (epochs := _epochs(overview, key)) != shown["epochs"]:
        news["epochs"] = epochs
    if table.version == shown["version"]:
        return news
    study = built_in(key)
    return {
        **news,
        "version": table.version,
        "options": {name: choices.options(table, name) for name in AXES},
        "map_options": {name: choices.options(table, name) for name in MAP},
        # With the first result come the first numbers that an axis can have.
        "values": _still(shown["values"], choices.first_axes(study, table), table),
        "map_values": _still(shown["map_values"], choices.first_map(study, table), table),
    }


def _epochs(overview: Overview, key: StudyKey) -> int:
    """Those that the running trials of the study have ended: of another number there are longer
    curves."""
    return sum(trial.epoch or 0 for trial in overview.running if trial.key == key)


def _register_answer(app: Dash, source: Source) -> None:
    @app.callback(
        Output("study-answer", "children"),
        Output("study-answered", "data"),
        Input("study-tick", "n_intervals"),
        State("study-variant", "data"),
        State("study-answered", "data"),
        prevent_initial_call=True,
    )
    def answer(_: int | None, variant: str, shown: str | None) -> tuple[Any, Any]:
        try:
            key = source.key(variant)
            answers = source.answers(key)
        except UserError:
            return no_update, no_update
        if answers is None:
            return no_update, no_update
        said = answers.headline or _finding(source, key) or answers.trouble
        version = str(hash((repr(answers), said)))
        return (no_update, no_update) if version == shown else (said or no_update, version)


def _register_stop(app: Dash, source: Source) -> None:
    @app.callback(
        Output("study-stopped", "children"),
        Input("study-stop", "submit_n_clicks"),
        State("study-variant", "data"),
        prevent_initial_call=True,
    )
    def stop(clicks: int | None, variant: str) -> Any:
        if not clicks:
            return no_update
        try:
            key = source.key(variant)
            with source.store() as opened:
                opened.ask_to_stop(key)
        except UserError as error:
            return parts.sentence_of(error)
        return "The study was asked to stop; results and checkpoints are kept, and the same command goes on."


def built_in(key: StudyKey) -> Study | None:
    """The study's description, which only a built-in one has here: a user's own lies in a file."""
    return Variant.read(key.overrides).study(load_study(key.study)) if key.study in NAMES else None


def _axes(figure: Figure) -> str:
    """The same text for figures over the same axes."""
    return str(figure["layout"]["uirevision"])


def _drawn(
    axes: Mapping[str, str | None],
    logarithmic: Sequence[str],
    filters: Mapping[str, rows.Filter],
    version: str,
    form: str,
) -> str:
    """What the scatter shows; the page comes with the first, so that a browser draws its many
    points once."""
    return json.dumps([[axes[name] for name in AXES], sorted(logarithmic), filters, version, form])


def _card(source: Source, key: StudyKey) -> Card | None:
    return read_card(source.storage.folder / "reports" / key.variant / CARD_FILE)


def _heading(source: Source, key: StudyKey) -> tuple[str, str]:
    """Title and question: of a study of one's own those that its report has, as soon as there is
    one."""
    study = built_in(key)
    if study:
        return study.title or key.study, study.question
    card = _card(source, key)
    return (card.title, card.question) if card else (key.study, "")


def _finding(source: Source, key: StudyKey) -> str:
    """The first that the report has found; empty where there is none."""
    card = _card(source, key)
    return card.findings[0] if card and card.findings else ""


def _choice(name: str, table: StudyTable, value: str | None, variant: str) -> Any:
    menu = dcc.Dropdown(
        choices.options(table, name),
        value,
        id=f"study-{name}",
        clearable=name in CLEARABLE,
        persistence=variant,
        persistence_type="session",
    )
    return html.Label([html.Span(name), menu])


def _scales() -> Any:
    return html.Label(
        [html.Span("logarithmic"), dcc.Checklist(["x", "y"], [], id="study-scales", inline=True)]
    )


def _still(
    values: Mapping[str, str | None], first: Mapping[str, str | None], table: StudyTable
) -> dict[str, Any]:
    """What was chosen, as far as the table has it: nothing, too, where that can be chosen."""

    def is_still(name: str, value: str | None) -> bool:
        return value in table.columns or (
            value is None and (name in CLEARABLE or first[name] is None)
        )

    return {
        name: no_update if is_still(name, value) else first[name] for name, value in values.items()
    }


def _links(source: Source, key: StudyKey) -> list[Any]:
    files: list[Any] = [
        html.A(form.upper(), href=f"/download/study/{quote(key.variant)}.{form}")
        for form in ("csv", "json")
    ]
    if (source.storage.folder / "reports" / key.variant / REPORT).is_file():
        files.insert(
            0, html.A("Report", href=f"/report/{quote(key.variant)}/{REPORT}", target="_blank")
        )
    elif is_url(str(source.storage)):
        files.insert(0, html.Span(f"Report: {source.storage}/reports/{key.variant}/{REPORT}"))
    return files


def _stop_study() -> Any:
    question = "Stop the study? Results and checkpoints are kept, and the same command goes on."
    return html.Span(
        parts.stop_button("study-stop", "Stop this study", question),
        id="study-stop-place",
        hidden=True,
    )


def _progress(source: Source, key: StudyKey) -> Any:
    overview = source.overview()
    counts = overview.of(key).counts
    lost, left = sum(counts[state] for state in LOST), overview.seconds_left.get(key)
    words = [f"{counts['done']:,} of {counted(sum(counts.values()), 'trial')} done"]
    words += [f"{counts['pruned']} stopped early"] if counts["pruned"] else []
    words += [f"{counts['running']} running"] if counts["running"] else []
    words += [f"{lost} without a result"] if lost else []
    words += [f"about {duration(left)} left"] if left is not None else []
    blown_up_words = blown_up(source.table(key).worse_than_uniform)
    return [
        html.P(", ".join(words), className="progress"),
        *([html.P(blown_up_words)] if blown_up_words else []),
    ]
