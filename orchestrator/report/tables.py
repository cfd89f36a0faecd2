"""The tables of a report as plain text cells, the same for the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.analysis import ID_DIGITS, METRICS, FlatResults, Interval, StudySummaryNumbers
from orchestrator.report import formats
from orchestrator.report.paths import trial_page
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
"""Cells of up to so many characters stay on one line; longer ones wrap between words."""


@dataclass(frozen=True)
class Cell:
    """One cell: its text, the number to sort by where it is one, a kind for its style."""

    text: str
    number: float | None = None
    kind: str = ""
    link: str = ""
    """Where the text leads on a page."""


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table ready to be shown."""

    caption: str
    head: Sequence[str]
    body: Sequence[Sequence[Cell]]
    folded: bool = False
    """Whether a page shows only its caption until that is clicked."""


def text_table(caption: str, rows: Iterable[Mapping[str, object]]) -> TextTable:
    """A table of cells, texts and whole numbers, in each row by the same headings.

    A short text is kept on one line, and so is the first of its row, a name.
    """
    records = list(rows)
    return headed_table(
        caption,
        tuple(records[0]) if records else (),
        (tuple(record.values()) for record in records),
    )


def headed_table(
    caption: str, head: Sequence[str], rows: Iterable[Sequence[object]], *, folded: bool = False
) -> TextTable:
    """Return the table of these rows; labels among the headings may equal other headings."""
    return TextTable(
        caption=caption,
        head=head,
        body=tuple(
            tuple(_cell(value, kind="short" if i else "name") for i, value in enumerate(values))
            for values in rows
        ),
        folded=folded,
    )


def _cell(value: object, *, kind: str) -> Cell:
    if isinstance(value, Cell):
        return value
    if isinstance(value, str):
        return Cell(value, kind=kind if kind == "name" or len(value) <= WHOLE else "")
    assert isinstance(value, int), "how a fraction is written is for its table to say"
    return Cell(str(value), value)


def csv_lines(records: Sequence[Mapping[Any, Any]], empty: Sequence[str] = ()) -> list[list[Any]]:
    """A heading and a line for each record, which all have the same keys; the heading `empty` where
    there is none."""
    heading = list(records[0]) if records else list(empty)
    return [heading, *(list(record.values()) for record in records)]


def ends(name: str, interval: Interval | None) -> dict[str, float | None]:
    """The two ends of an interval under names of their own; None where there is none."""
    return {
        f"{name}_low": interval.low if interval else None,
        f"{name}_high": interval.high if interval else None,
    }


def group_metrics(study: Study) -> list[str]:
    """What the study's tables of groups are about, in their order."""
    tables = [request for request in study.analyses if isinstance(request, GroupTable)]
    return list(dict.fromkeys(metric for table in tables for metric in table.metrics))


def trials_table(
    results: FlatResults, first_metrics: Sequence[str] = (), *, hashes: bool = False
) -> TextTable:
    """Every trial: name, state, the settings that differ between trials, the main metrics, and the
    cause of trouble.

    `first_metrics` are those of the study itself, which come before those that every study has.
    `hashes` shows the first digits of each setting's hash and of each trial's id."""
    varying = [name for name in results.varying if name != "output_layer.name"]
    if (
        len(varying) > MOST_SETTINGS
    ):  # models of different kinds: their names say more than their settings
        varying = [name for name in varying if name == "seed"]
    names = [*(name for name in first_metrics if name not in METRICS), *TRIAL_METRICS]
    metrics = [name for name in names if name in results.metric_columns] or list(
        results.metric_columns
    )
    with_cause = any(record["cause"] for record in results.records)
    last = [*(["setting", "trial id"] if hashes else []), *(["cause"] if with_cause else [])]
    head = ["trial", "state", *varying, *metrics, *last]
    body = []
    for record in results.records:
        state = Cell(record["state"], kind="bad" if record["state"] in LOST else "short")
        ids = [
            Cell(text, kind="short")
            for text in (record["setting"], record["trial_id"][:ID_DIGITS])
            if hashes
        ]
        cause = [_cause(record)] if with_cause else []
        settings = [sortable(record[name], formats.setting(record[name])) for name in varying]
        values = [sortable(record[name], formats.cell(name, record[name])) for name in metrics]
        body.append((_name(record), state, *settings, *values, *ids, *cause))
    caption = f"{len(body)} trials in the order of the plan"
    return TextTable(
        caption=caption, head=tuple(formats.title(name) for name in head), body=tuple(body)
    )


def trouble_table(summary: StudySummaryNumbers) -> TextTable:
    """The failed and diverged trials with their causes."""
    return text_table(
        f"{len(summary.trouble)} of {summary.trials} trials",
        (
            {
                "trial": _name(trial),
                "state": Cell(trial["state"], kind="bad"),
                "cause": _cause(trial, "no cause recorded"),
            }
            for trial in summary.trouble
        ),
    )


def _name(record: Mapping[str, Any]) -> Cell:
    return Cell(record["name"], kind="name", link=trial_page(record["trial_id"]))


def _cause(record: Mapping[str, Any], otherwise: str = "") -> Cell:
    """Whatever a trial has died of may have written its text."""
    return Cell(one_line(record["cause"] or otherwise, most=LONGEST_CAUSE), kind="cause")


def sortable(value: Any, text: str) -> Cell:
    """A cell that sorts by its value where that is a number."""
    if is_number(value) and math.isfinite(value):
        return Cell(text, number=float(value))
    return Cell(text, kind="none" if value is None else "short" if len(text) <= WHOLE else "")
