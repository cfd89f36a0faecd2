"""Metrics by the values of a setting that `--set` swept, and sections for one value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

import pandas as pd

from orchestrator.analysis import SweptNumbers, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, pivot
from orchestrator.report.findings import Finding, describe
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.sections.section import NOTHING, Section
from orchestrator.report.tables import Cell
from orchestrator.words import is_number, listed

MOST_COLOURS = 10
"""Largest number of groups with a colour each. If there are more, all are grey, and their mean is
black."""
WIDE_RANGE = 10
"""Above this ratio of the largest to the smallest value, the axis is logarithmic."""


def section_at(section: Section, values: Mapping[str, Any]) -> Section:
    """Return a copy of a section in which every text begins with the swept setting's value."""
    at = listed([f"{formats.title(key)} {formats.setting(value)}" for key, value in values.items()])
    first = f"At {at}: "
    return replace(
        section,
        heading=first + section.heading,
        findings=tuple(replace(finding, prefix=first) for finding in section.findings),
        tables=tuple(replace(table, caption=first + table.caption) for table in section.tables),
        drawings=tuple(
            replace(drawing, caption=first + drawing.caption) for drawing in section.drawings
        ),
    )


def swept_section(numbers: SweptNumbers) -> Section:
    """Return the section of a BySetting request."""
    if numbers.means.empty:
        return NOTHING
    title = formats.title(numbers.request.key)
    name = f"by-{title.replace(' ', '-')}"
    return Section(
        kind=name,
        heading=f"By {title}",
        findings=tuple(_findings(numbers)),
        tables=tuple(_tables(numbers, title, f"{name.replace('-', '_')}.csv")),
        method="95% intervals of the mean over seeds, by Student's t. A single trial has none, and "
        "neither have equal trials.",
        drawings=(_drawing(numbers, title, name.replace("-", "_")),),
    )


def _overall(numbers: SweptNumbers, metric: str) -> dict[Any, float]:
    compared = numbers.compared(metric)
    means = compared.groupby("value", sort=False)["mean"].agg(lambda means: mean(list(means)))
    return {value: means[value] for value in numbers.values} if len(means) else {}


def _findings(numbers: SweptNumbers) -> Iterator[Finding]:
    goal = numbers.request.goal
    for metric in numbers.metrics:
        overall = _overall(numbers, metric)
        if not overall:
            continue
        compared = numbers.compared(metric)
        # Results on the test text must not select a value.
        is_choice = len(set(overall.values())) > 1 and (
            numbers.request.is_own or not metric.startswith("test_")
        )
        sign = goal.sign(metric)
        least = min(overall, key=lambda value: sign * overall[value])
        models = compared.pivot(index="group", columns="value", values="mean")
        others = models.drop(columns=least)
        yield describe(
            "swept",
            metric=metric,
            key=numbers.request.key,
            models=len(models),
            means=list(overall.items()),
            lowest_at=least if is_choice else None,
            lowest_in=(sign * others)
            .gt(sign * models[least], axis="index")
            .all(axis="columns")
            .sum(),
            all_equal_in=(models.nunique(axis="columns") == 1).sum(),
            try_values=_outside(least, numbers.values)
            if is_choice and goal.mode_of(metric)
            else "",
        )


def _outside(best: Any, values: Sequence[Any]) -> str:
    if not all(map(is_number, values)):
        return ""
    if best == max(values):
        return "larger"
    # Few settings can be negative, so a best value of 0 gets no hint to try smaller values.
    return "smaller" if best == min(values) and best != 0 else ""


def _tables(numbers: SweptNumbers, title: str, file: str) -> Iterator[Table]:
    frame, across = pivot(
        numbers.means,
        index=["group", "value", "done", "trials"],
        across="metric",
        cell=_cell,
        headings={
            metric: formats.with_unit(metric, numbers.request.goal) for metric in numbers.metrics
        },
    )
    value = Column(title, formats.setting)
    yield Table(
        caption=f"Means over the done trials by {title}, with their 95% intervals",
        frame=frame,
        columns=["group", ("value", value), "done", *across],
    )
    yield Table(frame=numbers.means, file=file, names={"value": numbers.request.key})


def _cell(row: Any) -> Cell:
    text = formats.cell(row.metric, row.mean)
    if row.low is not None:
        low, high = (formats.cell(row.metric, end) for end in (row.low, row.high))
        text += " (all equal)" if row.low == row.high else f" [{low}, {high}]"
    return Cell(text, row.mean)


def _drawing(numbers: SweptNumbers, title: str, name: str) -> LineFigure:
    several = numbers.means["group"].nunique() > MOST_COLOURS
    goal = numbers.request.goal
    metrics = {metric: formats.with_unit(metric, goal) for metric in numbers.metrics}
    are_numbers = all(map(is_number, numbers.values))
    marks = _marks(numbers, several=several)
    if not are_numbers:  # side by side
        marks["x"] = marks["x"].map(formats.setting)
    lines = (
        "the thick line is the mean of the settings that have a value everywhere"
        if several
        else "one line per setting"
    )
    return LineFigure(
        name=name,
        caption=f"{formats.capital(listed(list(metrics.values())))} by {title}, {lines}; dots are "
        "trials.",
        marks=marks,
        x=title,
        y={metric: formats.capital(name) for metric, name in metrics.items()},
        logarithmic_x=are_numbers and numbers.values[-1] > WIDE_RANGE * numbers.values[0] > 0,
        ticks=numbers.values if are_numbers else (),
        across=min(2, len(metrics)),
    )


def _marks(numbers: SweptNumbers, *, several: bool) -> pd.DataFrame:
    names = {"metric": "row", "value": "x", "measured": "y", "mean": "y"}
    trials = numbers.trials.assign(kind="trial")
    # Intervals of means are in the table.
    means = numbers.means.drop(columns=["low", "high"]).dropna(subset=["mean"])
    means = means.assign(kind="faint" if several else "joined")
    overall = tidy(
        {
            "kind": "overall",
            "metric": metric,
            "value": value,
            "mean": mean,
            "group": f"mean of {numbers.compared(metric)['group'].nunique()} models",
        }
        for metric in numbers.metrics
        if several
        for value, mean in _overall(numbers, metric).items()
    )
    return pd.concat([part.rename(columns=names) for part in (trials, means, overall)])
