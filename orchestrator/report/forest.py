"""Estimates with their intervals, a row each, beside trials and printed values: forest plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator

from orchestrator.report import formats
from orchestrator.report.figures import (
    GROUP_MARKERS,
    OURS,
    PRINTED,
    group_colour,
    legend_above,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("panel", "name", "series", "value", "low", "high", "text", "trial_id")
TRIALS, MEANS = "a trial", "mean"
"""Series of our trials and their means; a series whose name begins with PUBLISHED is printed."""
PUBLISHED = "published"
MOST_PANELS = 3
"""In a line."""
PANEL_IN, ROW_IN, LETTER_IN = {1: 4.4, 2: 3.6, 3: 2.4}, 0.13, 0.085
SPREAD = 0.7
"""Share of a row over which its series lie."""
WIDEST = 100.0
"""Factor from the null value beyond which a logarithmic axis does not reach: an end that lies
there, or at infinity, is an arrow."""
TICKS = (
    (0.01, 0.1, 1.0, 10.0, 100.0),
    (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
    (0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0),
    (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5),
    (0.94, 0.96, 0.98, 1.0, 1.02, 1.04, 1.06),
)
"""Ticks of a logarithmic axis around 1, the coarsest first."""
FEWEST_TICKS = 4


@dataclass(frozen=True, kw_only=True)
class Forest:
    """What is drawn: a panel for each value of `panel`, all with the same rows."""

    marks: pd.DataFrame
    """A mark each: `name` (of its row), `series`, `value`, and if they apply `panel`, `low` and
    `high` (ends of its bar, which may be infinite), `text` (under a pointer), `trial_id`. A mark
    without a series is a row that has none."""
    labels: Mapping[str, str]
    """Panel -> label of its axis."""
    null: float | None = None
    """Where a dashed line stands."""
    logarithmic: bool = False


def draw_forest(forest: Forest) -> Figure:
    """Draw the panels, at most three in a line; a row without any value has a dash."""
    marks = forest.marks.reindex(columns=COLUMNS).astype(object)
    marks = marks.assign(panel=marks["panel"].fillna(""))
    names = list(dict.fromkeys(marks["name"]))
    series = list(dict.fromkeys(marks.dropna(subset=["series", "value"])["series"]))
    letters = max(len(part) for name in names for part in str(name).split("\n"))
    columns = min(len(forest.labels), 2 if len(forest.labels) == 4 else MOST_PANELS)
    lines = -(-len(forest.labels) // columns)
    shares = marks.groupby("panel")["series"].nunique().max()
    parts = max(str(name).count("\n") for name in names)
    row_in = max(0.3 + 0.15 * parts, ROW_IN * (1 + shares))
    figure, grid = new_panels(
        lines,
        columns,
        width_in=max(5.6, PANEL_IN[columns] * columns + LETTER_IN * letters),
        height_in=0.1 + lines * (0.6 + row_in * len(names)),
        sharey=True,
    )
    panels = list(chain(*grid))
    for axes in panels[len(forest.labels) :]:
        axes.set_visible(False)
    for axes, (panel, label) in zip(panels, forest.labels.items(), strict=False):
        _draw_panel(axes, marks[marks["panel"] == panel], names, series, forest)
        axes.set_xlabel(fill(label, round(PANEL_IN[columns] / LETTER_IN)))
        axes.set_title(panel if panel != label else "", fontsize=10)
    grid[0][0].set_yticks(range(len(names)), names)
    grid[0][0].set_ylim(len(names) - 0.5, -0.5)
    if len(series) > 1:
        legend_above(figure)
    return figure


def _draw_panel(
    axes: Axes, marks: pd.DataFrame, names: Sequence[str], series: Sequence[str], forest: Forest
) -> None:
    axes.tick_params(axis="y", length=0)
    axes.set_axisbelow(True)
    axes.grid(axis="y", color="0.93")
    if forest.null is not None:
        axes.axvline(forest.null, color="0.4", linewidth=0.9, linestyle="--", zorder=1)
    _scale(axes, marks, forest)
    here = [one for one in series if (marks["series"] == one).any()]
    for place, one in enumerate(here):
        offset = SPREAD * ((place + 0.5) / len(here) - 0.5)
        look = _look(one, series)
        axes.plot([], [], linestyle="none", label=one, **look)
        of_series = marks[marks["series"] == one].dropna(subset=["value"])
        for mark in of_series.itertuples():
            _draw_mark(axes, mark, names.index(str(mark.name)) + offset, look)
    for name in set(names).difference(marks.dropna(subset=["value"])["name"]):
        axes.text(
            0.5,
            names.index(name),
            formats.DASH,
            transform=axes.get_yaxis_transform(),
            va="center",
            color="0.4",
        )


def _look(one: str, series: Sequence[str]) -> dict[str, Any]:
    if one == TRIALS:
        opacity = 0.5 if any(name.startswith(MEANS) for name in series) else 1.0
        return {"color": OURS[0], "marker": "o", "markersize": 4.5, "alpha": opacity, "mew": 0}
    if one.startswith(MEANS):
        return {"color": OURS[0], "marker": "o", "markersize": 5.5}
    if one.startswith(PUBLISHED):
        place = [name for name in series if name.startswith(PUBLISHED)].index(one)
        return {"color": PRINTED[0], "marker": "^Dv"[place % 3], "markersize": 5.5}
    place = series.index(one)
    return {"color": group_colour(place), "marker": GROUP_MARKERS[place], "markersize": 4.5}


def _draw_mark(axes: Axes, mark: Any, y: float, look: dict[str, Any]) -> None:
    """The value and its bar; an arrow stands for an end beyond the axis."""
    low, high = axes.get_xlim()
    if mark.low is not None and not math.isnan(mark.low):
        ends = [min(max(end, low), high) for end in (mark.low, mark.high)]
        axes.plot(ends, [y, y], color=look["color"], linewidth=1.3, zorder=2)
        beyond = (mark.low < low, mark.high > high)
        for end, is_beyond, arrow in zip(ends, beyond, "<>", strict=True):
            if is_beyond:
                style: dict[str, Any] = {"color": look["color"], "markersize": 5, "zorder": 3}
                axes.plot([end], [y], arrow, clip_on=False, **style)
    x = min(max(mark.value, low), high)
    axes.plot([x], [y], linestyle="none", clip_on=False, zorder=3, **look)
    if isinstance(mark.text, str):
        ids = [mark.trial_id] if isinstance(mark.trial_id, str) else ()
        name_marks(axes, [(x, y)], [mark.text], ids)


def _scale(axes: Axes, marks: pd.DataFrame, forest: Forest) -> None:
    """Make everything finite fit, with a margin and the null value."""
    values = marks[["value", "low", "high"]].to_numpy(dtype=float)
    finite = [*values[np.isfinite(values)], *([] if forest.null is None else [forest.null])]
    if not finite:
        return
    if not forest.logarithmic or forest.null is None:
        margin = 0.06 * (max(finite) - min(finite) or 1.0)
        axes.set_xlim(min(finite) - margin, max(finite) + margin)
        axes.xaxis.set_major_locator(MaxNLocator(nbins=4, min_n_ticks=2))
        axes.xaxis.set_major_formatter("{x:,.7g}")
        return
    make_logarithmic(axes, "x")
    low = max(min(finite), forest.null / WIDEST) / 1.15
    high = min(max(finite), forest.null * WIDEST) * 1.15
    axes.set_xlim(low, high)
    inside = ([tick for tick in ticks if low <= tick <= high] for ticks in TICKS)
    axes.set_xticks(next((ticks for ticks in inside if len(ticks) >= FEWEST_TICKS), [forest.null]))
    axes.xaxis.set_minor_locator(NullLocator())
