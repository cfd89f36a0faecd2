"""Menus of the scatter plot's axes, and their initial values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dash import dcc, html

from orchestrator.report import title
from orchestrator.view.trials import StudyTrials

AXES = ("x", "y", "colour", "size")
OPTIONAL_AXES = ("colour", "size")
NUMERIC_AXES = ("y", "size")
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
"""Metrics of cost, which are not preselected because they are rarely a study's subject."""


def menus(trials: StudyTrials, variant: str) -> list[Any]:
    """Return a menu for each axis."""
    return [
        html.Label(
            [
                html.Span(axis),
                dcc.Dropdown(
                    _options(trials, axis),
                    value,
                    id=f"study-{axis}",
                    clearable=axis in OPTIONAL_AXES,
                    persistence=variant,
                    persistence_type="session",
                ),
            ]
        )
        for axis, value in _first_axes(trials).items()
    ]


def _options(trials: StudyTrials, axis: str) -> list[dict[str, str]]:
    names = [*trials.numbers, *(() if axis in NUMERIC_AXES else trials.texts)]
    return [{"label": label, "value": name} for name, label in labels(names).items()]


def labels(names: Sequence[str]) -> dict[str, str]:
    """Return name -> title of columns. Columns that would share a title keep their names."""
    titles = [title(name) for name in names]
    return {
        name: name if titles.count(text) > 1 else text
        for name, text in zip(names, titles, strict=True)
    }


def _first_axes(trials: StudyTrials) -> dict[str, str | None]:
    metrics = [name for name in trials.metrics if name in trials.numbers and name not in COSTS]
    settings = [name for name in trials.settings if name in trials.numbers and name != "seed"]
    xs = ["press_rank"] if "press_rank" in metrics else [*settings, *metrics]
    layers = [name for name in trials.texts if name == "output_layer.name"]
    colours = [*layers, *settings[::-1], *trials.texts, None]
    x, y = (xs[0], metrics[0]) if metrics else (None, None)
    return {"x": x, "y": y, "colour": colours[0], "size": None}
