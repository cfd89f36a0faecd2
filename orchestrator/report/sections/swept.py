"""Metrics by the values that `--set` swept a setting over, and how a section says that it is at one
of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import mean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from orchestrator.analysis import SweptNumbers, ValueLine
from orchestrator.report import formats
from orchestrator.report.figures import (
    GROUP_MARKERS,
    PALE,
    Drawing,
    group_colour,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, text_table
from orchestrator.words import counted, is_number, listed

PANEL_WIDTH_IN, PANEL_HEIGHT_IN = 3.1, 2.8
MOST_COLOURS = 10
"""Groups that a legend can name; more are drawn pale, with their mean."""
BEST_WHERE_LOWEST = ("perplexity", "cross_entropy", "error_percent")
"""How metrics end of which less is better."""
WIDE_RANGE = 10
"""Values that span a larger factor lie on a logarithmic axis."""


def section_at(section: Section, values: Mapping[str, Any], *, leads: bool) -> Section:
    """The same for the page, saying wherever it is read that its trials are those at these values
    of what was swept.

    Where it `leads`, its first finding is among those of the page; the others stay with it, and the
    terminal shows how the values compare."""
    at = f"at {listed([f'{formats.title(key)} {formats.setting(value)}' for key, value in values.items()])}"
    first, shown = f"{formats.capital(at)}: ", int(leads)
    return replace(
        section,
        heading=first + section.heading,
        findings=tuple(first + finding for finding in section.findings[:shown]),
        remarks=(*section.findings[shown:], *section.remarks),
        tables=tuple(replace(table, caption=first + table.caption) for table in section.tables),
        terminal=(),
        drawings=tuple(
            replace(drawing, caption=first + drawing.caption) for drawing in section.drawings
        ),
    )


def swept_section(numbers: SweptNumbers) -> Section:
    """The figure, the tables and the findings of a BySetting request."""
    title = formats.title(numbers.request.key)
    name, heading = f"by-{title.replace(' ', '-')}", f"By {title}"
    metrics = [
        metric
        for metric in numbers.request.metrics
        if any(line.measured[metric] for line in numbers.lines)
    ]
    if not metrics:
        return Section(
            kind=name, heading=heading, findings=("No trial has a result to compare yet.",)
        )
    several = len({line.group for line in numbers.lines}) > MOST_COLOURS
    lines = (
        "thick: the mean of the models that have a value everywhere"
        if several
        else "a line a model"
    )
    caption = f"{formats.capital(listed([formats.title(m) for m in metrics]))} by {title}, {lines}; dots are trials."
    groups = _group_table(numbers, metrics)
    return Section(
        kind=name,
        heading=heading,
        findings=tuple(_findings(numbers, metrics)),
        tables=(groups,),
        terminal=("\n".join(_findings(numbers, metrics)),) if several else None,
        method="Intervals are 95%, of the mean over seeds, by Student's t; one trial has none, nor have equal ones.",
        files={f"{name.replace('-', '_')}.csv": list(_csv(numbers, metrics))},
        drawings=(
            Drawing(
                name=name.replace("-", "_"), caption=caption, draw=lambda: _draw(numbers, metrics)
            ),
        ),
    )


def _findings(numbers: SweptNumbers, metrics: list[str]) -> Iterator[str]:
    """The means of the models that have one at every value, and which value is lowest:
    descriptions, not tests.

    Nothing is chosen by the test text, so of a test metric only the means are given.
    """
    title = formats.title(numbers.request.key)
    for metric in metrics:
        means = numbers.means(metric)
        if not means:
            continue
        overall = {
            value: mean(by_value[value] for by_value in means.values()) for value in numbers.values
        }
        least = min(overall, key=overall.__getitem__)
        shown = ", ".join(
            f"{formats.cell(metric, m)} at {formats.setting(value)}" for value, m in overall.items()
        )
        of, lowest = "", f"; lowest at {formats.setting(least)}"
        if len(means) > 1:
            of = f", mean of {counted(len(means), 'model')}"
            lowest += f", in {_how_many(means.values(), least)}"
        at_end = _at_end(least, numbers.values) if metric.endswith(BEST_WHERE_LOWEST) else ""
        if len(set(overall.values())) == 1 or metric.startswith("test_"):
            lowest = at_end = ""
        yield f"{formats.capital(formats.title(metric))} by {title}{of}: {shown}{lowest}.{at_end}"


def _how_many(means: Collection[Mapping[Any, float]], least: Any) -> str:
    """How many models have their lowest at this value of the setting alone, and how many have
    none."""
    alone = sum(
        all(by_value[least] < m for value, m in by_value.items() if value != least)
        for by_value in means
    )
    if alone == len(means):
        return "every one of them"
    equal = sum(len(set(by_value.values())) == 1 for by_value in means)
    return f"{alone} of them" + (f"; {equal} of them the same at all values" if equal else "")


def _at_end(best: Any, values: Sequence[Any]) -> str:
    """Where the best one is an end of the range, a further value may be better; below 0 most
    settings have none."""
    if not all(map(is_number, values)):
        return ""
    if best == max(values):
        return " The best value is the last of the range: try larger ones."
    return (
        " The best value is the first of the range: try smaller ones."
        if best == min(values) and best != 0
        else ""
    )


def _group_table(numbers: SweptNumbers, metrics: list[str]) -> TextTable:
    title = formats.title(numbers.request.key)
    rows = []
    for line in numbers.lines:
        count = str(line.done) if line.done == line.trials else f"{line.done} of {line.trials}"
        value = line.value if isinstance(line.value, int | float) else None
        cells = {
            "model": line.group,
            title: Cell(formats.setting(line.value), value),
            "trials": Cell(count, line.done),
        }
        rows.append(cells | {formats.title(metric): _cell(line, metric) for metric in metrics})
    return text_table(f"Means over the done trials by {title}, with their 95% intervals", rows)


def _cell(line: ValueLine, metric: str) -> Cell:
    average, interval = line.sample(metric).mean, line.interval(metric)
    text = formats.cell(metric, average)
    if interval is not None and interval.low == interval.high:
        text += " (all equal)"
    elif interval is not None:
        text += f" [{formats.cell(metric, interval.low)}, {formats.cell(metric, interval.high)}]"
    return Cell(text, average)


def _csv(numbers: SweptNumbers, metrics: list[str]) -> Iterator[list[Any]]:
    yield ["group", numbers.request.key, "metric", "n", "mean", "sd", "low", "high"]
    for line in numbers.lines:
        for metric in metrics:
            sample, interval = line.sample(metric), line.interval(metric)
            ends = [interval.low, interval.high] if interval else [None, None]
            yield [line.group, line.value, metric, sample.n, sample.mean, sample.sd, *ends]


def _draw(numbers: SweptNumbers, metrics: list[str]) -> Figure:
    rows, columns = math.ceil(len(metrics) / 2), min(2, len(metrics))
    width_in, height_in = PANEL_WIDTH_IN * columns + 0.4, PANEL_HEIGHT_IN * rows + 0.5
    figure, grid = new_panels(rows, columns, width_in=width_in, height_in=height_in)
    panels = [axes for line in grid for axes in line]
    for axes, metric in zip(panels, metrics, strict=False):
        _draw_panel(axes, numbers, metric)
    for axes in panels[len(metrics) :]:
        axes.set_visible(False)
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=9)
    return figure


def _draw_panel(axes: Axes, numbers: SweptNumbers, metric: str) -> None:
    places = _places(numbers.values)
    groups = list(dict.fromkeys(line.group for line in numbers.lines))
    several = len(groups) > MOST_COLOURS
    for k, group in enumerate(groups):
        points = {
            places[line.value]: line.measured[metric]
            for line in numbers.lines
            if line.group == group
        }
        points = {x: values for x, values in points.items() if values}
        colour = PALE if several else group_colour(k)
        xs, ys = (
            [x for x, values in points.items() for _ in values],
            [y for values in points.values() for y in values],
        )
        axes.scatter(xs, ys, s=10, color=colour, alpha=0.6, linewidths=0)
        axes.plot(
            list(points), [mean(values) for values in points.values()], color=colour, linewidth=0.8 if several else 1.2,
            marker="" if several else GROUP_MARKERS[k % len(GROUP_MARKERS)], markersize=4.5,
            label="" if several else group,
        )  # fmt: skip
    means = numbers.means(metric)
    if several and means:
        overall = [mean(by_value[value] for by_value in means.values()) for value in numbers.values]
        label = f"mean of {len(means)} models"
        axes.plot(
            [places[value] for value in numbers.values],
            overall,
            color="black",
            linewidth=2.2,
            label=label,
        )
    if places[numbers.values[0]] > 0 and numbers.values[-1] / numbers.values[0] > WIDE_RANGE:
        make_logarithmic(axes, "x")
    axes.set_xticks(list(places.values()), [formats.setting(value) for value in places])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel(formats.title(numbers.request.key))
    axes.set_ylabel(formats.capital(formats.title(metric)))


def _places(values: tuple[Any, ...]) -> dict[Any, float]:
    """Where on the axis each value lies: a number where it is, others side by side from 0 on."""
    if all(map(is_number, values)):
        return {value: float(value) for value in values}
    return {value: float(place) for place, value in enumerate(values)}
