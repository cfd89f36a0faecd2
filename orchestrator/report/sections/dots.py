"""A dot a trial, their mean with its interval, and the published value beside them: a row a group,
a panel a metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from textwrap import fill

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from orchestrator.analysis import Interval, TrialValue
from orchestrator.report import formats
from orchestrator.report.figures import OURS, PRINTED, Drawing, new_panels
from orchestrator.report.hover import name_marks
from search_spaces.published import PublishedNumber

PANEL_IN, ROW_IN, LETTER_IN, TITLE_LETTERS = 2.4, 0.32, 0.085, 30
TRIALS_AT, MEAN_AT, PUBLISHED_AT = -0.22, 0.06, 0.3
"""Where in its row each kind of mark lies, so that none hides another."""
PUBLISHED_MARKS = "^Dv"


@dataclass(frozen=True, kw_only=True)
class DotRow:
    """What is known of one group, or of the difference of two."""

    name: str
    trials: Sequence[TrialValue] = ()
    mean: float | None = None
    interval: Interval | None = None
    published: Mapping[str, PublishedNumber] = field(default_factory=dict)
    """By who says so."""


@dataclass(frozen=True, kw_only=True)
class DotPanel:
    """One metric; all panels of a figure have rows of the same names."""

    title: str
    rows: Sequence[DotRow]
    zero_line: bool = False


def dot_drawings(
    name: str, caption: str, panels: Sequence[DotPanel], *, comparable: bool = True
) -> tuple[Drawing, ...]:
    """The figure of these panels, below the sentence `caption` and what its marks are; none where
    no trial has a value.

    Published values that are not `comparable` with ours have panels of their own, so that ours fill
    theirs."""
    rows = [row for panel in panels for row in panel.rows]
    if not any(row.trials for row in rows):
        return ()
    laid_out = list(_lay_out(panels, comparable=comparable))
    whole = f"{caption}. {_explain(rows, comparable=comparable)}"
    return (Drawing(name=name, caption=whole, draw=partial(draw_dots, laid_out)),)


def _explain(rows: Sequence[DotRow], *, comparable: bool) -> str:
    """What the marks are."""
    text = "A dot a trial"
    if any(len(row.trials) > 1 for row in rows):
        text += ", and the mean of several" + (
            " with its 95% interval" if any(row.interval for row in rows) else ""
        )
    printed = [value for row in rows for value in row.published.values()]
    if not printed:
        return f"{text}."
    bars = ", bars their printed deviation" if any(value.deviation for value in printed) else ""
    apart = (
        ""
        if comparable
        else ", below on axes of their own, as they are of models or a text other than ours"
    )
    return f"{text}. Orange: published values{bars}{apart}."


def _lay_out(panels: Sequence[DotPanel], *, comparable: bool) -> Iterator[list[DotPanel]]:
    columns = 2 if len(panels) == 4 else 3
    for first in range(0, len(panels), columns):
        line = panels[first : first + columns]
        if comparable or not any(row.published for panel in line for row in panel.rows):
            yield list(line)
        else:
            yield [
                replace(panel, rows=[replace(row, published={}) for row in panel.rows])
                for panel in line
            ]
            yield [
                replace(
                    panel,
                    title=f"{panel.title}, published",
                    rows=[DotRow(name=row.name, published=row.published) for row in panel.rows],
                )
                for panel in line
            ]


def draw_dots(panels: Sequence[Sequence[DotPanel]]) -> Figure:
    """Draw the panels, as many in a row as the first row has; what is empty stays blank."""
    rows, columns = panels[0][0].rows, len(panels[0])
    letters = max(len(part) for row in rows for part in row.name.split("\n"))
    row_in = ROW_IN * (1.4 if any("\n" in row.name for row in rows) else 1.0)
    figure, grid = new_panels(
        len(panels),
        columns,
        width_in=max(5.6, PANEL_IN * columns + LETTER_IN * letters),
        height_in=0.35 + len(panels) * (0.75 + row_in * len(rows)),
        sharey=True,
    )
    for line, panels_of_line in zip(grid, panels, strict=True):
        for axes, panel in zip_longest(line, panels_of_line):
            if panel and any(row.trials or row.published for row in panel.rows):
                _draw_panel(axes, panel)
            else:
                axes.set_visible(False)
    grid[0][0].set_yticks(range(len(rows)), [row.name for row in rows])
    grid[0][0].set_ylim(len(rows) - 0.5, -0.5)
    marks = {
        label: mark
        for axes in figure.axes
        for mark, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        marks.values(),
        marks,
        loc="outside upper center",
        ncols=len(marks),
        frameon=False,
        fontsize=9,
    )
    return figure


def _draw_panel(axes: Axes, panel: DotPanel) -> None:
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="0.93")
    axes.set_xlabel(fill(panel.title, TITLE_LETTERS))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=4, min_n_ticks=2))
    axes.xaxis.set_major_formatter("{x:,.7g}")
    axes.margins(x=0.08)
    if panel.zero_line:
        axes.axvline(0, color="0.4", linewidth=0.9, linestyle="--")
    several = any(len(row.trials) > 1 for row in panel.rows)
    offset, opacity = (TRIALS_AT, 0.4) if several else (0.0, 1.0)
    trials = [(place + offset, one) for place, row in enumerate(panel.rows) for one in row.trials]
    if trials:
        dots = [(one.value, y) for y, one in trials]
        x, y = np.transpose(dots)
        axes.scatter(x, y, s=22, color=OURS[0], alpha=opacity, linewidths=0, label="a trial")
        names = [f"{one.name}\n{panel.title} {formats.number(one.value)}" for _, one in trials]
        name_marks(axes, dots, names, [one.trial_id for _, one in trials])
    _draw_means(axes, panel)
    _draw_published(axes, panel)


def _draw_means(axes: Axes, panel: DotPanel) -> None:
    """Of several trials; a single one is its own mean."""
    rows = [(place + MEAN_AT, row) for place, row in enumerate(panel.rows) if len(row.trials) > 1]
    means = [(row.mean, y) for y, row in rows if row.mean is not None]
    intervals = [(y, row.interval) for y, row in rows if row.interval]
    for y, interval in intervals:
        axes.plot([interval.low, interval.high], [y, y], color=OURS[0], linewidth=1.6)
    if means:
        label = "mean, 95% interval" if intervals else "mean"
        axes.plot(*np.transpose(means), "o", color=OURS[0], markersize=5.5, label=label)
        name_marks(
            axes, means, [_mean_name(row, panel.title) for _, row in rows if row.mean is not None]
        )


def _mean_name(row: DotRow, title: str) -> str:
    interval = ""
    if row.interval and row.interval.low == row.interval.high:
        interval = "\nall equal"
    elif row.interval:
        interval = f"\n95% interval {formats.number(row.interval.low)} to {formats.number(row.interval.high)}"
    return f"{row.name}\nmean of {len(row.trials)} trials\n{title} {formats.number(row.mean)}{interval}"


def _draw_published(axes: Axes, panel: DotPanel) -> None:
    """The triangles, with a bar of one deviation on either side where one is printed."""
    offset = PUBLISHED_AT if any(row.trials for row in panel.rows) else 0.0
    sources = dict.fromkeys(source for row in panel.rows for source in row.published)
    for mark, source in zip(PUBLISHED_MARKS, sources, strict=False):
        printed = [
            (place + offset, row) for place, row in enumerate(panel.rows) if source in row.published
        ]
        points = [(row.published[source].value, y) for y, row in printed]
        deviations = [row.published[source].deviation or 0.0 for _, row in printed]
        x, y = np.transpose(points)
        axes.errorbar(
            x,
            y,
            xerr=deviations,
            fmt=mark,
            color=PRINTED[0],
            markersize=6,
            elinewidth=1,
            label=source,
        )
        names = [
            f"{row.name}\n{source}: {formats.printed(row.published[source], panel.title)}"
            for _, row in printed
        ]
        name_marks(axes, points, names)
