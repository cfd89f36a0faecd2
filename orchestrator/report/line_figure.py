"""Figures of marks and lines over a number: trials, means with bars, curves with bands, bounds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any, Literal

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from orchestrator.analysis import rows
from orchestrator.report.figures import (
    GROUP_MARKERS,
    LIMIT,
    PALE,
    PRINTED,
    group_colour,
    group_line,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks

if TYPE_CHECKING:
    import pandas as pd

ASIDE = 1.02
"""Factor of x between the marks of neighbouring groups, so that none covers another."""
MOST_TICKS = 8
MOST_SUBDIVIDED = 1e3
"""Greatest over least value of an axis up to which there are ticks between powers of ten."""
LEGEND_LETTERS = 64
"""In a line."""
MOST_COLOURS = 10
"""Groups that a legend can name; more are drawn pale."""


@dataclass(frozen=True, kw_only=True)
class LineFigure:
    """What is drawn in a grid of panels, which share a legend."""

    marks: pd.DataFrame
    """A mark, or a point of a line, each: its `kind` (see `KINDS`), x and y, and if they apply
    `group`, `row` and `panel` (labels), `low` and `high` (ends of its bar or band), `text` (shown
    under a pointer), `trial_id`, and `hollow`."""
    x: str
    """Label of the axis x."""
    y: Mapping[str, str]
    """Row -> label of its axis y, in the order of the rows."""
    logarithmic_x: bool = True
    logarithmic_y: Collection[str] = ()
    """Rows."""
    least_y: float | None = None
    """Lower end of the axes y."""
    ticks: Mapping[Literal["x", "y"], Sequence[float]] = field(default_factory=dict)
    """Places of the ticks, as far as they have room."""
    tick_labels: Sequence[str] = ()
    """Of the ticks on x; numbers if empty."""
    share_y: bool = True
    """Whether the panels of a row have the same axis y."""
    dodge: bool = False
    """Whether groups lie beside one another, not on the same x."""
    panel_in: tuple[float, float] = (4.0, 3.4)
    """Width and height of a panel, inches."""


def draw_lines(spec: LineFigure) -> Figure:
    """Draw the figure: a line of panels for each row, a panel for each value of `panel`."""
    marks = spec.marks.reindex(columns=[*COLUMNS, *set(spec.marks.columns).difference(COLUMNS)])
    marks = marks.astype(object)
    marks = marks.assign(row=marks["row"].fillna(""), panel=marks["panel"].fillna(""))
    panels = list(dict.fromkeys(marks["panel"]))
    groups = list(dict.fromkeys(marks["group"].dropna()))
    width_in, height_in = spec.panel_in
    figure, grid = new_panels(
        len(spec.y),
        len(panels),
        width_in=max(5.6, width_in * len(panels) + 0.4),
        height_in=height_in * len(spec.y) + 0.4,
        sharey="row" if spec.share_y else False,
    )
    for line, (row, label) in zip(grid, spec.y.items(), strict=True):
        for axes, panel in zip(line, panels, strict=True):
            _draw_panel(
                axes, marks[(marks["row"] == row) & (marks["panel"] == panel)], groups, spec
            )
            _label(axes, spec, row)
            if line is grid[0]:
                axes.set_title(panel, fontsize=10)
            if line is grid[-1]:
                axes.set_xlabel(spec.x)
        line[0].set_ylabel(label)
    named: dict[str, Any] = {}
    for axes in chain(*grid):
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            named.setdefault(label, handle)
    columns = max(1, LEGEND_LETTERS // (4 + max(map(len, named), default=0)))
    figure.legend(
        named.values(), named, loc="outside upper center", ncols=columns, frameon=False, fontsize=9
    )
    return figure


def _draw_panel(axes: Axes, marks: pd.DataFrame, groups: Sequence[str], spec: LineFigure) -> None:
    shift = {
        group: ASIDE ** (place - (len(groups) - 1) / 2) if spec.dodge else 1.0
        for place, group in enumerate(groups)
    }
    marks = marks.assign(group=marks["group"].fillna(""))
    keys = dict.fromkeys(zip(marks["kind"], marks["group"], strict=True))
    for kind, group in keys:
        part = marks[(marks["kind"] == kind) & (marks["group"] == group)]
        place = groups.index(group) if group in groups else 0
        several = len(groups) > MOST_COLOURS
        look = {
            "color": PALE if several else group_colour(place),
            "marker": "" if several else GROUP_MARKERS[place % len(GROUP_MARKERS)],
            "line": group_line(place),
            "label": "_" if several or not group else group,
        }
        part = part.assign(x=part["x"].astype(float) * shift.get(group, 1.0))
        KINDS[kind](axes, part, look)
        named = part[part["text"].notna()]
        if len(named):
            ids = list(named["trial_id"].fillna(""))
            name_marks(axes, named[["x", "y"]].to_numpy(dtype=float), list(named["text"]), ids)


def _draw_trials(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    axes.scatter(part["x"], part["y"], s=9, color=look["color"], alpha=0.35, linewidths=0)


def _draw_means(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    _draw_bars(axes, part, look["color"])
    hollow = part["hollow"].fillna(False).astype(bool)
    for chosen, face in ((~hollow, look["color"]), (hollow, "white")):
        if chosen.any():
            axes.plot(
                part[chosen]["x"],
                part[chosen]["y"],
                linestyle="none",
                markersize=4.5,
                mfc=face,
                **_mark(look),
            )


def _draw_joined(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    _draw_bars(axes, part, look["color"])
    axes.plot(part["x"], part["y"], linewidth=1.2, markersize=4.5, **_mark(look))


def _mark(look: dict[str, Any]) -> dict[str, Any]:
    return {name: look[name] for name in ("color", "marker", "label")}


def _draw_printed(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    colour, marker, line = PRINTED
    axes.plot(part["x"], part["y"], line, color=colour, marker=marker, label=look["label"])


def _draw_bars(axes: Axes, part: pd.DataFrame, colour: str) -> None:
    bars = part.dropna(subset=["low", "high"])
    axes.vlines(bars["x"], bars["low"], bars["high"], colors=colour, linewidth=1.1)


def _draw_curve(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    x, colour = part["x"].astype(float), look["color"]
    axes.plot(x, part["y"], look["line"], color=colour, linewidth=1.2, label=look["label"])
    bands = part[["low", "high"]].astype(float)
    axes.fill_between(x, bands["low"], bands["high"], color=colour, alpha=0.15, linewidth=0)


def _draw_predictions(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    _draw_bars(axes, part, LIMIT)
    axes.plot(part["x"], part["y"], "x", color=LIMIT, markersize=6, label=look["label"])


def _draw_reference(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    for line in rows(part):
        style: dict[str, Any] = {"color": PRINTED[0], "linewidth": 1.2, "linestyle": "--"}
        axes.axhline(line.y, label=look["label"], **style)
        axes.axhspan(line.low, line.high, color=PALE, alpha=0.4, linewidth=0, zorder=0)


def _draw_bound(axes: Axes, part: pd.DataFrame, _: dict[str, Any]) -> None:
    for value in part["y"]:
        axes.axhline(value, color=PALE, linewidth=1, linestyle=":", zorder=0)


def _draw_range(axes: Axes, part: pd.DataFrame, _: dict[str, Any]) -> None:
    for low, high in zip(part["low"], part["high"], strict=True):
        axes.axvspan(low, high, color="0.92", zorder=0, linewidth=0)


KINDS = {
    "trial": _draw_trials,
    "mean": _draw_means,
    "joined": _draw_joined,
    "printed": _draw_printed,
    "curve": _draw_curve,
    "prediction": _draw_predictions,
    "reference": _draw_reference,
    "bound": _draw_bound,
    "range": _draw_range,
}
"""How marks are drawn: pale dots; means with bars, alone or joined by a line; printed values; a line with a band;
crosses; a horizontal line with a band; a dotted horizontal line; a shaded range of x."""
COLUMNS = ("kind", "row", "panel", "group", "x", "y", "low", "high", "text", "trial_id", "hollow")


def _label(axes: Axes, spec: LineFigure, row: str) -> None:
    """Scale the axes and put their ticks."""
    if spec.logarithmic_x:
        make_logarithmic(axes, "x")
    if row in spec.logarithmic_y:
        low, high = axes.get_ylim()
        subs = (1.0, 2.0, 5.0) if high < MOST_SUBDIVIDED * low else (1.0,)
        make_logarithmic(axes, "y").set_major_locator(LogLocator(subs=subs))
    if spec.least_y is not None:
        axes.set_ylim(bottom=spec.least_y)
    for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
        if places := spec.ticks.get(name):  # type: ignore[call-overload]
            labels = spec.tick_labels if name == "x" else ()
            if not labels:
                places = sorted(set(places))
                places = places[:: math.ceil(len(places) / MOST_TICKS)]
                labels = [f"{place:g}" if place < 1e5 else f"{place:.2g}" for place in places]
            axis.set_ticks(places, labels)
            axis.set_minor_locator(NullLocator())
