"""What can be put on a figure's axes, and what is there before a reader chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from dash import dcc, html

from orchestrator.report import title
from orchestrator.view.trials import StudyTrials
from search_spaces.analyses import Analysis
from search_spaces.study import Correlation, GridMap, Study

AXES, MAP = ("x", "y", "colour", "size"), ("row", "column", "value")
CLEARABLE = ("colour", "size")
NUMERIC = ("y", "size", "value")
FIRST_METRICS = ("valid_perplexity", "test_perplexity", "press_rank", "entropy_rank")
COSTS = (
    "epochs",
    "kept_epoch",
    "parameters",
    "peak_memory_mib",
    "seconds",
    "seconds_per_epoch",
    "tokens_per_second",
    "wall_seconds",
)
"""What a study is seldom about."""
A = TypeVar("A", bound=Analysis)


def menus(trials: StudyTrials, first: Mapping[str, str | None], variant: str) -> list[Any]:
    """A menu for each of these axes, with what is there first."""
    return [
        html.Label(
            [
                html.Span(axis),
                dcc.Dropdown(
                    _options(trials, axis),
                    value,
                    id=f"study-{axis}",
                    clearable=axis in CLEARABLE,
                    persistence=variant,
                    persistence_type="session",
                ),
            ]
        )
        for axis, value in first.items()
    ]


def _options(trials: StudyTrials, axis: str) -> list[dict[str, str]]:
    """Numbers, and texts if the axis can show them."""
    names = [*trials.numbers, *(() if axis in NUMERIC else trials.texts)]
    return [{"label": label, "value": name} for name, label in labels(names).items()]


def labels(names: Sequence[str]) -> dict[str, str]:
    """Titles of columns by name; the name itself if several have the same title."""
    titles = [title(name) for name in names]
    return {
        name: name if titles.count(text) > 1 else text
        for name, text in zip(names, titles, strict=True)
    }


def first_axes(study: Study | None, trials: StudyTrials) -> dict[str, str | None]:
    """Of the scatter: what the study asks about, or the first settings and metrics."""
    asked = _request(study, Correlation)
    asked_x, asked_y = (asked.x, asked.y) if asked else ("", "")
    metrics, settings = _metrics(trials), numeric_settings(trials)
    y = _first(trials, asked_y, "test_perplexity", "valid_perplexity", *metrics)
    x = _first(trials, asked_x, "press_rank", *settings, *metrics)
    layers = [name for name in trials.texts if name == "output_layer.name"]
    colour = next(iter([*layers, *settings[::-1], *trials.texts]), None)
    return {"x": x if y else None, "y": y, "colour": colour, "size": None}


def first_map(study: Study | None, trials: StudyTrials) -> dict[str, str | None]:
    """Of the grid map."""
    asked, settings = _request(study, GridMap), [*numeric_settings(trials), *trials.texts]
    row, column = (asked.row, asked.column) if asked else ("", "")
    values = asked.values if asked else ()
    return {
        "row": row if row in settings else next(iter(settings), None),
        "column": column if column in settings else next(iter(settings[1:]), None),
        "value": _first(trials, *values, "test_perplexity", *_metrics(trials)),
    }


def numeric_settings(trials: StudyTrials) -> list[str]:
    """The settings that are numbers, without the seed."""
    return [name for name in trials.settings if name in trials.numbers and name != "seed"]


def parallel_columns(trials: StudyTrials) -> list[str]:
    """Numeric settings and the main metrics."""
    metrics = [name for name in FIRST_METRICS if name in trials.numbers]
    return [*numeric_settings(trials), *(metrics or _metrics(trials)[:4])]


def _metrics(trials: StudyTrials) -> list[str]:
    """Numeric metrics without those of cost."""
    return [name for name in trials.metrics if name in trials.numbers and name not in COSTS]


def _first(trials: StudyTrials, *names: str) -> str | None:
    return next((name for name in names if name in trials.numbers), None)


def _request(study: Study | None, kind: type[A]) -> A | None:
    requests = study.analyses if study else ()
    return next((request for request in requests if isinstance(request, kind)), None)
