"""The table of a study's trials: its columns, and pages of it, sorted and filtered as the browser
asks."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from orchestrator.report import title
from orchestrator.view.parts import trial_address
from orchestrator.view.table import MOST_TEXTS, StudyTable
from orchestrator.words import is_number

FIRST_METRICS = ("valid_perplexity", "test_perplexity", "press_rank", "entropy_rank")
DIGITS, BOX_DIGITS = 5, 7
CONDITIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "equals": operator.eq,
    "notEqual": operator.ne,
    "lessThan": operator.lt,
    "lessThanOrEqual": operator.le,
    "greaterThan": operator.gt,
    "greaterThanOrEqual": operator.ge,
    "contains": operator.contains,
    "notContains": lambda text, part: part not in text,
    "startsWith": str.startswith,
    "endsWith": str.endswith,
}
"""The grid's names for them."""
Filter = Mapping[str, Any]
NAME = {"pinned": "left", "width": 236, "cellRenderer": "markdown", "cellClass": "opens"}

NUMBER = {
    "valueFormatter": {
        "function": "Math.abs(params.value) >= 1e7 ? params.value.toExponential(4) : params.value"
    }
}
TEXT = {"filterParams": {"maxNumConditions": MOST_TEXTS}}
"""As many as a box over an axis of texts can hold; the grid keeps two by itself."""
CAUSE = {"flex": 1, "minWidth": 240}


def columns(table: StudyTable) -> list[dict[str, Any]]:
    """As the grid takes them."""
    return [
        {
            "field": name,
            "headerName": name if title(name) in ("name", "state") and place > 1 else title(name),
            "headerTooltip": name,
            "filter": "agNumberColumnFilter" if _is_numeric(table, name) else "agTextColumnFilter",
            **(NAME if place == 0 else {"tooltipField": name}),
            **(NUMBER if _is_numeric(table, name) else TEXT),
            **(CAUSE if name == "cause" else {}),
        }
        for place, name in enumerate(_names(table))
    ]


def _names(table: StudyTable) -> list[str]:
    """Name and state, what differs between trials, the main metrics, the others."""
    short = table.short_metrics
    first = [name for name in FIRST_METRICS if name in short]
    others = [name for name in short if name not in FIRST_METRICS]
    return ["name", "state", *table.settings, *first, *others, "attempt", "cause"]


def chosen(
    table: StudyTable, filters: Mapping[str, Filter], order: Sequence[Mapping[str, str]] = ()
) -> list[int]:
    """The places of the trials that pass every filter, by a column's name, in this order; missing
    values come last."""
    known = {name: wanted for name, wanted in filters.items() if name in table.columns}
    places = [place for place in range(len(table.ids)) if _passes(table, place, known)]
    for sorting in reversed([sorting for sorting in order if sorting["colId"] in table.columns]):
        values = table.columns[sorting["colId"]]
        present = [place for place in places if values[place] is not None]
        missing = [place for place in places if values[place] is None]
        present.sort(key=lambda place: _sortable(values[place]), reverse=sorting["sort"] == "desc")
        places = present + missing
    return places


def records(table: StudyTable, places: Sequence[int], variant: str) -> list[dict[str, Any]]:
    """What the grid shows of these trials of the study of this variant; names are links to their
    pages."""
    names = _names(table)
    return [
        {
            "id": table.ids[place],
            **{name: _shown(table.columns[name][place]) for name in names},
            "name": f"[{_plain(table.names[place])}]({trial_address(table.ids[place], variant)})",
        }
        for place in places
    ]


def _plain(words: str) -> str:
    """Words in Markdown that are no more than words."""
    return re.sub(r"([^\w\s])", r"\\\1", words)


def along(table: StudyTable, name: str, low: float, high: float) -> Filter:
    """The filter that passes what lies from `low` to `high` on the axis of this column: numbers, or
    places of texts."""
    if name in table.numeric:
        return between(low, high)
    return _one_of([text for place, text in enumerate(table.levels(name)) if low <= place <= high])


def _one_of(texts: Sequence[str]) -> Filter:
    """The filter that passes these texts."""
    if not texts:
        return {
            "filterType": "text",
            "operator": "AND",
            "conditions": [_text("blank"), _text("notBlank")],
        }
    conditions = [{**_text("equals"), "filter": text} for text in texts]
    return (
        conditions[0]
        if len(texts) == 1
        else {"filterType": "text", "operator": "OR", "conditions": conditions}
    )


def _text(kind: str) -> dict[str, str]:
    return {"filterType": "text", "type": kind}


def between(low: float, high: float) -> Filter:
    """The filter that passes the numbers from `low` to `high`."""
    low, high = (float(f"{end:.{BOX_DIGITS}g}") for end in (low, high))
    return {"filterType": "number", "type": "inRange", "filter": low, "filterTo": high}


def _passes(table: StudyTable, place: int, filters: Mapping[str, Filter]) -> bool:
    return all(_passes_one(table.columns[name][place], wanted) for name, wanted in filters.items())


def _passes_one(value: Any, wanted: Filter) -> bool:
    if conditions := wanted.get("conditions"):
        passed = (_passes_one(value, condition) for condition in conditions)
        return any(passed) if wanted["operator"] == "OR" else all(passed)
    kind = wanted["type"]
    if kind in ("blank", "notBlank"):
        return (value is None) == (kind == "blank")
    if value is None or (wanted.get("filterType") == "number" and not is_number(value)):
        return False
    sought = wanted.get("filter")
    if kind == "inRange":
        low, high = (end if end is not None else value for end in (sought, wanted.get("filterTo")))
        return bool(low <= value <= high)
    if sought is None:
        return True
    if wanted.get("filterType") == "text":
        value, sought = str(value).lower(), str(sought).lower()
    return CONDITIONS[kind](value, sought)


def _is_numeric(table: StudyTable, name: str) -> bool:
    return name == "attempt" or name in table.numeric


def _sortable(value: Any) -> tuple[bool, Any]:
    """Numbers before texts; values of other kinds as texts."""
    return (False, value) if isinstance(value, int | float) else (True, str(value))


def _shown(value: Any) -> Any:
    """A number to a few digits, as the table has no place for more; lists as texts."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value if value is None or isinstance(value, int | str) else str(value)
