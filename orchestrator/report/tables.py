"""Tables of a report as plain text cells, the same for page and terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis import ID_DIGITS, METRICS, FlatResults, StudySummaryNumbers
from orchestrator.report import formats
from orchestrator.store import LOST
from orchestrator.words import is_number, one_line
from search_spaces.study import GroupTable, Study

TRIAL_METRICS = (
    "train_perplexity",
    "valid_perplexity",
    "test_perplexity",
    "press_rank",
    "effective_rank_1e-3",
    "effective_rank_1e-4",
    "effective_rank_1e-5",
    "entropy_rank",
    "stable_rank",
    "noisy_press_rank",
    "noisy_effective_rank_1e-3",
    "noisy_effective_rank_1e-4",
    "noisy_effective_rank_1e-5",
    "kept_epoch",
    "epochs",
    "seconds",
)
MOST_SETTINGS = 6
LONGEST_CAUSE = 1000
WHOLE = 32
"""Cells of at most this many characters stay on one line; longer ones wrap between words."""


@dataclass(frozen=True)
class Cell:
    """Text of a table's cell, a number to sort by (if any), and a kind that sets the style."""

    text: str
    number: float | None = None
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table ready to be shown."""

    caption: str
    head: Sequence[str]
    body: Sequence[Sequence[Cell]]
    folded: bool = False


def headed_table(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> TextTable:
    """Return a table from plain values. Numbers sort by value."""
    body = [[sortable(value, str(value)) for value in values] for values in rows]
    return TextTable(caption="", head=head, body=body)


def group_metrics(study: Study) -> list[str]:
    """Return the metrics of the study's group tables, in their order."""
    tables = [request for request in study.analyses if isinstance(request, GroupTable)]
    return list(dict.fromkeys(metric for table in tables for metric in table.metrics))


def trials_table(
    results: FlatResults, first_metrics: Sequence[str] = (), *, hashes: bool = False
) -> TextTable:
    """Return every trial: name, state, settings that differ, main metrics, cause of trouble.

    `first_metrics` come before the metrics that all studies have. `hashes` adds the first digits of
    the setting's hash and the trial's id.
    """
    varying = [name for name in results.varying if name != "output_layer.name"]
    if len(varying) > MOST_SETTINGS:  # models of different kinds, better described by their names
        varying = [name for name in varying if name == "seed"]
    names = [*(name for name in first_metrics if name not in METRICS), *TRIAL_METRICS]
    measured = results.metric_columns
    metrics = [name for name in names if name in measured] or list(measured)
    ids = ["setting", "trial id"] * hashes
    cause = ["cause"] * any(record["cause"] for record in results.records)
    body = [
        [
            _name(record),
            _state(record),
            *(sortable(record[name], formats.setting(record[name])) for name in varying),
            *(sortable(record[name], formats.cell(name, record[name])) for name in metrics),
            *(Cell(record[name.replace(" ", "_")][:ID_DIGITS], kind="short") for name in ids),
            *(_cause(record) for _ in cause),
        ]
        for record in results.records
    ]
    head = ["trial", "state", *varying, *metrics, *ids, *cause]
    caption = f"{len(body)} trials in the order of the plan"
    return TextTable(caption=caption, head=[formats.title(name) for name in head], body=body)


def trouble_table(summary: StudySummaryNumbers) -> TextTable:
    """Return the failed and diverged trials with their causes."""
    trouble = summary.trouble
    return TextTable(
        caption=f"{len(trouble)} of {summary.trials} trials",
        head=["trial", "state", "cause"],
        body=[
            [_name(trial), _state(trial), _cause(trial, "no cause recorded")] for trial in trouble
        ],
    )


def _name(record: Mapping[str, Any]) -> Cell:
    return Cell(record["name"], kind="name")


def _state(record: Mapping[str, Any]) -> Cell:
    return Cell(record["state"], kind="bad" if record["state"] in LOST else "short")


def _cause(record: Mapping[str, Any], otherwise: str = "") -> Cell:
    return Cell(one_line(record["cause"] or otherwise, most=LONGEST_CAUSE), kind="cause")


def sortable(value: Any, text: str) -> Cell:
    """Return a cell that sorts by its value if that is a finite number."""
    if is_number(value) and math.isfinite(value):
        return Cell(text, number=float(value))
    return Cell(text, kind="none" if value is None else "short" if len(text) <= WHOLE else "")
