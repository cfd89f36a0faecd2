"""Figures of metrics against a number, with trials, means, curves and horizontal lines."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from orchestrator.analysis import rows
from orchestrator.report.figures import (
    COLOURS,
    GROUP_LINES,
    GROUP_MARKERS,
    LIMIT,
    PALE,
    PRINTED,
    Drawing,
    group_colour,
    legend_above,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.formats import setting
from orchestrator.report.hover import name_marks
from orchestrator.report.palette import GROUP_COLOURS

ASIDE = 1.02
MOST_TICKS = 8
MOST_NAMED = len(GROUP_COLOURS) * len(GROUP_LINES)
"""Largest number of groups with a colour and line style each. If there are more, all are grey."""
MOST_LEVELS = 10
"""Up to this number of distinct values, the colour bar has a tick per value."""
WIDE_SPREAD = 10
"""From this ratio of the largest to the smallest value, the colour scale is logarithmic."""
PANELS_IN = {1: (5.2, 3.8), 2: (3.6, 3.0)}
"""Number of columns -> width and height of a panel, inches. More columns use `SMALL_IN`."""
SMALL_IN = 2.7, 2.4


@dataclass(frozen=True, kw_only=True)
class LineFigure(Drawing):
    """A grid of panels with one legend."""

    marks: pd.DataFrame
    """One mark or point of a line per row: `kind` (see `KINDS`), `x`, `y`. Optional: `group`,
    `row` and `panel` (row and column of the grid, as labels or config values), `line` (separates
    lines of a group), `low` and `high` (ends of the bar or band), `left` and `right` (ends of the
    bar along x), `text` (tooltip), `hollow`, `colour` (a number)."""
    x: str
    y: Mapping[str, str]
    """Row -> label of its y axis, in the order of the rows."""
    logarithmic_x: bool = True
    logarithmic_y: Collection[str] = ()
    ticks: Sequence[float] = ()
    """Ticks of the x axis; some are omitted if there are many. Without `ticks`, x may hold texts.
    """
    groups: Sequence[str] = ()
    """Groups in the order of their colours; by default the groups of the marks."""
    colour: str = ""
    across: int = 1
    """Number of panels side by side, if marks have no `panel`."""
    dodge: bool = False
    """Shift groups sideways, so that no group covers another."""

    def draw(self) -> Figure:
        """Return the figure."""
        marks = self.marks.reindex(columns=COLUMNS).astype(object).assign(shade=None)
        for name in ("row", "panel", "group", "line"):
            marks[name] = marks[name].fillna("").map(setting)
        levels = sorted(set(marks["colour"].dropna())) if self.colour else []
        if levels:
            norm = _norm(levels[0], levels[-1])
            marks["shade"] = marks["colour"].map({one: COLOURS(norm(one)) for one in levels})
        panels = list(marks["panel"].unique())
        columns = self.across if len(panels) == 1 else len(panels)
        cells = list(product(self.y, panels))
        width_in, height_in = PANELS_IN.get(columns, SMALL_IN)
        figure, axes_of_cells = new_panels(
            len(cells),
            columns,
            width_in=max(5.6, width_in * columns + 0.4),
            row_in=height_in,
            sharey="row" if self.across == 1 else False,
        )
        groups = list(self.groups or filter(None, marks["group"].unique()))
        for index, (axes, (row, panel)) in enumerate(zip(axes_of_cells, cells, strict=True)):
            of_panel = marks[(marks["row"] == row) & (marks["panel"] == panel)]
            self._draw_panel(axes, of_panel, groups)
            self._scale(axes, row)
            if index < len(panels):
                axes.set_title(panel, fontsize=10)
            if index + columns >= len(cells):
                axes.set_xlabel(self.x)
            if panel == panels[0]:
                axes.set_ylabel(self.y[row])
        if levels:
            ticks = levels if len(levels) <= MOST_LEVELS else None
            bar = figure.colorbar(
                ScalarMappable(norm, COLOURS), ax=figure.axes, ticks=ticks, pad=0.02, format="{x:g}"
            )
            bar.ax.minorticks_off()
            bar.set_label(self.colour)
        legend_above(figure)
        return figure

    def _draw_panel(self, axes: Axes, marks: pd.DataFrame, groups: list[str]) -> None:
        several = len(groups) > MOST_NAMED
        for (kind, group, _), part in marks.groupby(["kind", "group", "line"], sort=False):
            index = groups.index(group) if group in groups else 0
            look = {
                "color": PALE if several else group_colour(index),
                "marker": "" if several else GROUP_MARKERS[index % len(GROUP_MARKERS)],
                "linestyle": GROUP_LINES[index // len(GROUP_COLOURS) % len(GROUP_LINES)],
                "label": "_" if several or not group else group,
            }
            if part["shade"].notna().any():
                look |= {"color": part["shade"].iloc[0], "linestyle": "-"}
            if self.dodge:
                part = part.assign(x=part["x"] * ASIDE ** (index - (len(groups) - 1) / 2))
            kind = str(kind)
            DRAWN.get(kind, _draw_line)(axes, part, look | KINDS.get(kind, {}))
            named = part[part["text"].notna()]
            if len(named):
                points, first = named[["x", "y"]].to_numpy(dtype=float), slice(None)
                if kind == "curve":  # one name for the whole line
                    points, first = points[None, ::NAMED_STEP], slice(1)
                name_marks(axes, points, list(named["text"][first]))

    def _scale(self, axes: Axes, row: str) -> None:
        if self.logarithmic_x:
            make_logarithmic(axes, "x")
        if row in self.logarithmic_y:
            make_logarithmic(axes, "y")
        if ticks := sorted(set(self.ticks)):
            ticks = ticks[:: math.ceil(len(ticks) / MOST_TICKS)]
            labels = [f"{tick:g}" if tick < 1e5 else f"{tick:.2g}" for tick in ticks]
            axes.set_xticks(ticks, labels)
            axes.xaxis.set_minor_locator(NullLocator())


def _norm(low: float, high: float) -> Normalize:
    if low > 0 and high / low >= WIDE_SPREAD:
        return LogNorm(low, high)
    return Normalize(low, high if high > low else low + 1)


def _draw_line(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    if len(bars := part.dropna(subset=["low", "high"])):
        axes.vlines(bars["x"], bars["low"], bars["high"], colors=look["color"], linewidth=1.1)
    hollow = part["hollow"].fillna(False).astype(bool)
    for chosen, face in ((~hollow, look["color"]), (hollow, "white")):
        if chosen.any():
            style: dict[str, Any] = {"linewidth": 1.2, "markersize": 4.5, "mfc": face} | look
            axes.plot(part[chosen]["x"], part[chosen]["y"], **style)


def _draw_curve(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    x = part["x"].astype(float)
    axes.plot(x, part["y"], linewidth=1.2, **look)
    bands = part[["low", "high"]].astype(float)
    axes.fill_between(x, bands["low"], bands["high"], color=look["color"], alpha=0.15, linewidth=0)


def _draw_points(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    ends = part.dropna(subset=["low", "high", "left", "right"])
    style: dict[str, Any] = {"colors": "0.45", "linewidth": 0.7}
    axes.vlines(ends["x"], ends["low"], ends["high"], **style)
    axes.hlines(ends["y"], ends["left"], ends["right"], **style)
    shades = list(part["shade"]) if part["shade"].notna().all() else look["color"]
    axes.scatter(
        part["x"],
        part["y"],
        s=34,
        c=shades,
        marker=look["marker"],
        label=look["label"],
        edgecolors="black",
        linewidths=0.5,
        zorder=3,
    )


def _draw_path(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    if part["shade"].notna().all():
        look |= {"label": "_"}
    axes.plot(part["x"], part["y"], linewidth=0.9, **look)
    hollow = part["hollow"].astype(bool)
    for chosen, opacity in ((~hollow, 1.0), (hollow, 0.35)):
        points = part[chosen]["x"], part[chosen]["y"]
        axes.plot(*points, "o", markersize=3, color=look["color"], alpha=opacity)
    end = part.iloc[-1]
    axes.plot(end["x"], end["y"], "o", markersize=6.5, mfc="none", mec=look["color"])


def _draw_levels(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    for level in rows(part):
        if level.y is not None:
            axes.axhline(level.y, **look)
        if level.low is not None:
            axes.axhspan(level.low, level.high, color="0.92", zorder=0, linewidth=0)


KINDS: Mapping[str, dict[str, Any]] = {
    "trial": {"linestyle": "none", "marker": "o", "markersize": 3, "alpha": 0.35, "label": "_"},
    "mean": {"linestyle": "none"},
    "faint": {"color": PALE, "linewidth": 0.8, "linestyle": "-", "marker": "", "label": "_"},
    "overall": {"color": "black", "linewidth": 2.2, "linestyle": "-", "marker": ""},
    "printed": {"color": PRINTED, "marker": "^", "linestyle": "--"},
    "prediction": {"color": LIMIT, "linestyle": "none", "marker": "x", "markersize": 6},
    "curve": {"marker": ""},
    "path": {"marker": ""},
    "bound": {"color": PALE, "linewidth": 1, "linestyle": ":", "marker": "", "zorder": 0},
    "limit": {"color": LIMIT, "linewidth": 1.2, "linestyle": "--", "marker": ""},
    "reference": {"color": PRINTED, "linewidth": 1.2, "linestyle": "--", "marker": ""},
}
"""Kind of mark -> its style.

A "path" is a line with dots (pale if hollow) and a ring at its end. "bound", "limit" and
"reference" are horizontal lines, with a band if they have `low`. A line in the group's colour joins
"joined" marks, which need no entry.
"""
DRAWN = {
    "curve": _draw_curve,
    "point": _draw_points,
    "path": _draw_path,
    **dict.fromkeys(("bound", "limit", "reference", "band"), _draw_levels),
}
"""Kind of mark -> function that draws it. `_draw_line` draws all other kinds.

A "point" is large, with bars along x and y. A "band" has only `low` and `high`.
"""
NAMED_STEP = 4
"""A curve's tooltip area passes through every `NAMED_STEP`-th point of the curve."""
COLUMNS = (
    "kind", "row", "panel", "group", "line", "x", "y", "low", "high", "left", "right", "text",
    "hollow", "colour",
)  # fmt: skip
