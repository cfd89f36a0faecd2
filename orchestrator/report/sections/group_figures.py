"""Figures of groups: trials, means and published values, a row per group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from orchestrator.analysis import ContrastNumbers, DifferenceNumbers, GroupNumbers, rows, tidy
from orchestrator.report import formats
from orchestrator.report.figures import Drawing
from orchestrator.report.forest import MEANS, PUBLISHED, TRIALS, Forest
from orchestrator.words import listed

FIRST = ("test_perplexity", "press_rank")
NOT_DRAWN = ("parameters", "train_perplexity", "valid_perplexity")
"""Metrics that are equal for all seeds, or similar to another metric of the table."""
Mark = dict[str, Any]


def group_drawings(numbers: GroupNumbers) -> tuple[Drawing, ...]:
    """Return the figure of a GroupTable request: a panel per metric, with published values."""
    measured = set(numbers.trials["metric"])
    metrics = [metric for metric in numbers.request.metrics if metric in measured]
    drawn_metrics = [metric for metric in metrics if metric not in NOT_DRAWN] or metrics
    if not drawn_metrics:
        return ()
    drawn_metrics.sort(key=[*FIRST, *drawn_metrics].index)
    groups, marks = list(rows(numbers.groups)), []
    for metric in drawn_metrics:
        panel = formats.capital(formats.with_unit(metric, numbers.request.goal))
        of_metric = numbers.trials[numbers.trials["metric"] == metric]
        for row in groups:
            name = row.group + f" ({row.done} of {row.trials})" * (row.done < row.trials)
            printed = f"published_{numbers.corpus}_{metric}"
            estimate = [getattr(row, f"{metric}_{end}") for end in ("mean", "low", "high")]
            marks += _marks(panel, name, row.group, of_metric, *estimate)
            if (value := getattr(row, printed, None)) is not None:
                source = f"{PUBLISHED}, {formats.corpus_title(numbers.corpus)}"
                deviation = getattr(row, f"{printed}_sd")
                marks.append(_printed(panel, name, source, metric, value, deviation))
    caption = (
        f"{formats.capital(listed([formats.title(metric) for metric in drawn_metrics]))} by group"
    )
    if any(row.done < row.trials for row in groups):
        caption += ". In brackets: done and planned trials"
    return _drawings("groups", caption, marks, comparable=numbers.comparable)


def gain_drawings(numbers: DifferenceNumbers) -> tuple[Drawing, ...]:
    """Return the figure of each group's gain over its baseline, ours and published."""
    metric, corpus = formats.title(numbers.request.metric), formats.corpus_title(numbers.corpus)
    panel, marks = f"gain in {metric}", []
    for row in rows(numbers.differences):
        marks += _marks(panel, _pair(row), row.group, numbers.trials, row.ours)
        for column, source in numbers.sources.items():
            if (value := getattr(row, column)) is not None:
                series = f"{PUBLISHED} by {source}, {corpus}"
                marks.append(_printed(panel, _pair(row), series, panel, value))
    caption = (
        f"Gain in mean {metric} over the baseline. Right of the dashed line, the setting is better"
    )
    return _drawings("differences", caption, marks, comparable=numbers.comparable, null=0)


def contrast_drawings(numbers: ContrastNumbers) -> tuple[Drawing, ...]:
    """Return the figure of a family of tests: differences with the tests' intervals."""
    metric = formats.with_unit(numbers.request.metric, numbers.request.goal)
    panel, marks, tests = f"difference in {metric}", [], list(rows(numbers.comparisons))
    for row in tests:
        estimate = row.difference, row.difference_low, row.difference_high
        marks += _marks(panel, _pair(row), row.group, numbers.trials, *estimate)
    partner = "baseline at the same seed"
    if any(row.test != "paired" for row in tests):
        partner += " (unpaired tests: from the baseline's mean)"
    caption = (
        f"Difference in {metric} from the {partner}. Left of the dashed line, the setting has the "
        "lower value"
    )
    return _drawings("tests", caption, marks, null=0)


def _pair(row: Any) -> str:
    return f"{row.group}\nagainst {row.baseline}"


def _marks(
    panel: str,
    name: str,
    group: str,
    of_groups: pd.DataFrame,
    mean: float | None,
    low: float | None = None,
    high: float | None = None,
) -> list[Mark]:
    trials = list(rows(of_groups[of_groups["group"] == group]))
    marks = [
        {
            "series": TRIALS,
            "value": trial.value,
            "text": f"{trial.name}\n{panel} {formats.number(trial.value)}",
        }
        for trial in trials
    ]
    if len(trials) > 1:
        text = f"{name}\nmean of {len(trials)} trials\n{panel} {formats.number(mean)}"
        if low is not None:
            ends = f"95% interval {formats.number(low)} to {formats.number(high)}"
            text += f"\n{'all equal' if low == high else ends}"
        marks.append({"series": MEANS, "value": mean, "low": low, "high": high, "text": text})
    return [{"panel": panel, "name": name} | mark for mark in marks or [{}]]


def _printed(
    panel: str,
    name: str,
    series: str,
    metric: str,
    value: float,
    deviation: float | None = None,
) -> Mark:
    return {
        "panel": panel,
        "name": name,
        "series": series,
        "value": value,
        "low": None if deviation is None else value - deviation,
        "high": None if deviation is None else value + deviation,
        "text": f"{name}\n{series}: {formats.printed(metric, value, deviation)}",
    }


def _drawings(
    name: str,
    caption: str,
    marks: Sequence[Mark],
    *,
    comparable: bool = True,
    null: float | None = None,
) -> tuple[Drawing, ...]:
    if not any(mark.get("series") == TRIALS for mark in marks):
        return ()
    frame = tidy(marks)
    series = frame["series"].fillna("")
    text = "One dot per trial"
    if (means := series == MEANS).any():
        text += ", and the mean of several trials"
        if frame["low"][means].notna().any():
            text += " with its 95% interval"
            frame["series"] = frame["series"].where(~means, f"{MEANS}, 95% interval")
    if (printed := series.str.startswith(PUBLISHED)).any():
        bars = " with bars of their printed deviation" * bool(frame["low"][printed].notna().any())
        text += f". Orange: published values{bars}"
        if not comparable:
            # Separate panels, so that the axes of ours fit our values.
            text += ", on separate axes because their models or text differ from ours"
            frame["panel"] = frame["panel"].where(~printed, frame["panel"] + f", {PUBLISHED}")
    # Our panels come first, and our marks come first in a row.
    frame = pd.concat([frame[~printed], frame[printed]])
    panels = list(dict.fromkeys(frame["panel"]))
    labels = dict(zip(panels, panels, strict=True))
    whole = f"{caption}. {text}."
    return (Forest(name=name, caption=whole, marks=frame, labels=labels, null=null),)
