"""The tables of a report as plain text cells, the same for the page and the terminal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from orchestrator.analysis.frames import METRICS, FlatResults
from orchestrator.analysis.grid import Grid, GridCell
from orchestrator.analysis.summary import StudySummaryNumbers
from orchestrator.report import formats
from orchestrator.store.records import LOST
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
SHORT = {"press_rank": "rank", "test_perplexity": "ppl"}
"""Metrics in the caption of a grid that has several in a cell."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell: its text, the number to sort by where it is one, and a kind for its style."""

    text: str
    number: float | None = None
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class TextTable:
    """A table ready to be shown."""

    caption: str
    head: tuple[str, ...]
    body: tuple[tuple[Cell, ...], ...]


def grid_table(grids: Sequence[Grid]) -> TextTable:
    """Metrics over the same two config values, each cell as in "92 / 189.2", or the state of what has no value."""
    first = grids[0]
    names = [formats.title(grid.metric) for grid in grids]
    if len(grids) > 1:
        names = [SHORT.get(grid.metric, name) for grid, name in zip(grids, names, strict=True)]
    row, column = formats.title(first.row), formats.title(first.column)
    body = []
    for i, value in enumerate(first.rows):
        label = replace(_sortable(value, formats.setting(value)), kind="label")
        across = zip(*(grid.cells[i] for grid in grids), strict=True)
        body.append((label, *(_grid_cell(grids, cells) for cells in across)))
    return TextTable(
        caption=f"{' / '.join(names)} over {row} (down) and {column} (across)",
        head=(f"{row} \\ {column}", *(formats.setting(value) for value in first.columns)),
        body=tuple(body),
    )


def _grid_cell(grids: Sequence[Grid], cells: Sequence[GridCell]) -> Cell:
    if all(cell.value is None for cell in cells):
        state = cells[0].state
        return Cell(text="" if state == "none" else state, kind="bad" if state in LOST else "waiting")
    text = " / ".join(formats.cell(grid.metric, cell.value) for grid, cell in zip(grids, cells, strict=True))
    return Cell(text=text, number=cells[0].value)


def own_metrics(study: Study) -> list[str]:
    """What the study's tables of groups are about, in their order."""
    tables = [request for request in study.analyses if isinstance(request, GroupTable)]
    return list(dict.fromkeys(metric for table in tables for metric in table.metrics))


def trials_table(results: FlatResults, own: Sequence[str] = ()) -> TextTable:
    """Every trial: name, state, the settings that differ between trials, the main metrics, and the cause of trouble.

    `own` are metrics of the study itself, which come before those that every study has.
    """
    varying = [name for name in results.varying if name != "output_layer.name"]
    if len(varying) > MOST_SETTINGS:  # models of different kinds: their names say more than their settings
        varying = [name for name in varying if name == "seed"]
    shown = [*(name for name in own if name not in METRICS), *TRIAL_METRICS]
    metrics = [name for name in shown if name in results.metric_columns] or list(results.metric_columns)
    with_cause = any(record["cause"] for record in results.records)
    head = ["trial", "state", *varying, *metrics, *(["cause"] if with_cause else [])]
    body = []
    for record in results.records:
        state = Cell(text=record["state"], kind="bad" if record["state"] in LOST else "short")
        cause = [Cell(text=record["cause"] or "", kind="cause")] if with_cause else []
        settings = [_sortable(record[name], formats.setting(record[name])) for name in varying]
        values = [_sortable(record[name], formats.cell(name, record[name])) for name in metrics]
        body.append((Cell(text=record["name"], kind="name"), state, *settings, *values, *cause))
    caption = f"{len(body)} trials in the order of the plan"
    return TextTable(caption=caption, head=tuple(formats.title(name) for name in head), body=tuple(body))


def trouble_table(summary: StudySummaryNumbers) -> TextTable:
    """The failed and diverged trials with their causes."""
    return TextTable(
        caption=f"{len(summary.trouble)} of {summary.trials} trials",
        head=("trial", "state", "cause"),
        body=tuple(
            (
                Cell(text=trial.name, kind="name"),
                Cell(text=trial.state, kind="bad"),
                Cell(text=trial.cause, kind="cause"),
            )
            for trial in summary.trouble
        ),
    )


def correlations_table(summary: StudySummaryNumbers) -> TextTable:
    """Ours with intervals, and a column for each corpus that a paper published values for."""
    lines = summary.correlations
    corpora = list(dict.fromkeys(value.corpus for line in lines for value in line.published))
    several = len({(line.x, line.y) for line in lines}) > 1
    body = []
    for line in lines:
        published = {value.corpus: formats.published(value) for value in line.published}
        what = f"{formats.title(line.x)}, {formats.title(line.y)}: " if several else ""
        body.append(
            (
                Cell(text=what + formats.window(line.window, line.y)),
                Cell(text=str(line.pearson.n), number=line.pearson.n),
                Cell(text=formats.with_interval(line.pearson), kind="short"),
                Cell(text=formats.p_value(line.pearson.p_value), kind="short"),
                Cell(text=formats.with_interval(line.spearman), kind="short"),
                *(Cell(text=published.get(corpus, "\N{EN DASH}"), kind="short") for corpus in corpora),
            )
        )
    caption = next((f"{formats.capital(formats.title(line.x))} and {formats.title(line.y)}" for line in lines), "")
    notes = ", ".join(dict.fromkeys(line.missing for line in lines if line.missing))
    return TextTable(
        caption=("Several pairs of metrics" if several else caption) + (f"; left out: {notes}" if notes else ""),
        head=(
            "cells",
            "n",
            "Pearson r [95%]",
            "p",
            "Spearman \N{GREEK SMALL LETTER RHO} [95%]",
            *(f"published {formats.corpus_title(corpus)}: Pearson r" for corpus in corpora),
        ),
        body=tuple(body),
    )


def _sortable(value: Any, text: str) -> Cell:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        return Cell(text=text, number=float(value))
    return Cell(text=text, kind="none" if value is None else "short")
