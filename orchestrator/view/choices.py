"""What can be put on a figure's axes, and what stands there before a reader chooses."""

from __future__ import annotations

from typing import TypeVar

from orchestrator.report import title
from orchestrator.view.rows import FIRST_METRICS
from orchestrator.view.table import StudyTable
from search_spaces.analyses import Analysis
from search_spaces.study import Correlation, GridMap, Study

AXES = ("x", "y", "colour", "size")
CLEARABLE = ("colour", "size")
"""The axes that may show nothing."""
MAP = ("row", "column", "value")
COSTS = (
    "epochs",
    "kept_epoch",
    "parameters",
    "seconds",
    "seconds_per_epoch",
    "tokens_per_second",
    "wall_seconds",
)
"""And memory: what a study is seldom about."""
A = TypeVar("A", bound=Analysis)


def options(table: StudyTable, axis: str) -> list[dict[str, str]]:
    """What the axis of that name can show: numbers and, but for a size or a map's value, settings
    with few texts."""
    texts = () if axis in ("size", "value", "y") else table.texts
    names = [*table.numeric, *texts]
    titles = [title(name) for name in names]
    return [
        {"label": name if titles.count(text) > 1 else text, "value": name}
        for name, text in zip(names, titles, strict=True)
    ]


def first_axes(study: Study | None, table: StudyTable) -> dict[str, str | None]:
    """Of the scatter: what the study asks about, or the first settings and metrics that say
    something."""
    asked = _request(study, Correlation)
    metrics, settings = _metrics(table), numeric_settings(table)
    asked_x, asked_y = (asked.x, asked.y) if asked else ("press_rank", "test_perplexity")
    y = _first(table, asked_y, "test_perplexity", "valid_perplexity", *metrics)
    x = _first(table, asked_x, "press_rank", *settings, *(name for name in metrics if name != y))
    layer = next((name for name in table.texts if name == "output_layer.name"), None)
    everywhere = [name for name in settings if None not in table.settings[name]]
    colour = layer or next(iter(reversed(everywhere)), None) or next(iter(table.texts), None)
    return {"x": x if y else None, "y": y, "colour": colour, "size": None}


def first_map(study: Study | None, table: StudyTable) -> dict[str, str | None]:
    """Of the grid map."""
    asked, settings = _request(study, GridMap), [*numeric_settings(table), *table.texts]
    values = (*(asked.values if asked else ()), "test_perplexity", *_metrics(table))
    return {
        "row": asked.row if asked and asked.row in table.settings else next(iter(settings), None),
        "column": asked.column
        if asked and asked.column in table.settings
        else next(iter(settings[1:]), None),
        "value": _first(table, *values),
    }


def numeric_settings(table: StudyTable) -> list[str]:
    """The settings that are numbers, without the seed."""
    return [name for name in table.settings if name in table.numeric and name != "seed"]


def parallel_columns(table: StudyTable) -> list[str]:
    """Settings and main metrics that all trials have which have any of these metrics."""
    metrics = [name for name in FIRST_METRICS if name in table.numeric] or _metrics(table)[:4]
    return [*numeric_settings(table), *metrics]


def _metrics(table: StudyTable) -> list[str]:
    """Numeric metrics, those of cost left out."""
    costs = {*COSTS, "peak_memory_mib"}
    return [name for name in table.metrics if name in table.numeric and name not in costs]


def _first(table: StudyTable, *names: str) -> str | None:
    return next((name for name in names if name in table.numeric), None)


def _request(study: Study | None, kind: type[A]) -> A | None:
    return next(
        (request for request in (study.analyses if study else ()) if isinstance(request, kind)),
        None,
    )
