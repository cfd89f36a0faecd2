"""Figures of marks and lines over a number: trials, means with bars, curves with bands, bounds."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from orchestrator.analysis import rows
from orchestrator.report.figures import (
    COLOURS,
    GROUP_LINES,
    GROUP_MARKERS,
    LIMIT,
    PALE,
    PRINTED,
    group_colour,
    group_line,
    legend_above,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.palette import GROUP_COLOURS

ASIDE = 1.02
"""Factor of x between the marks of neighbouring groups, so that none covers another."""
MOST_TICKS = 8
TICKS = {
    5.0: (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0),
    50.0: (1.0, 2.0, 3.0, 5.0),
    1000.0: (1.0, 2.0, 5.0),
    math.inf: (1.0,),
}
"""Greatest over least value of a logarithmic axis up to which it has ticks at these multiples of
powers of ten."""
MOST_NAMED = len(GROUP_COLOURS) * len(GROUP_LINES)
"""Groups that colours and lines tell apart; more are drawn pale."""
MOST_LEVELS = 10
"""Colours that have a tick each."""


@dataclass(frozen=True, kw_only=True)
class LineFigure:
    """What is drawn in a grid of panels, which share a legend."""

    marks: pd.DataFrame
    """A mark, or a point of a line, each: its `kind` (see `KINDS`), x and y, and if they apply
    `group`, `row` and `panel` (labels), `low` and `high` (ends of its bar or band), `left` and
    `right` (ends of its bar along x), `text` (shown under a pointer), `trial_id`, `hollow`, and
    `colour` (a number)."""
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
    groups: Sequence[str] = ()
    """All groups, in the order of their colours; those of the marks if empty."""
    colour: str = ""
    """Label of the bar of colours, if marks have some."""
    across: int = 1
    """Number of rows that lie next to one another, in a figure without `panel`."""
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
    norm = None
    if spec.colour:
        norm = Normalize(marks["colour"].min(), marks["colour"].max())
        marks["shade"] = [None if pd.isna(one) else COLOURS(norm(one)) for one in marks["colour"]]
    panels = list(dict.fromkeys(marks["panel"]))
    columns = spec.across if len(panels) == 1 else len(panels)
    places = [(row, panel) for row in spec.y for panel in panels]
    lines = math.ceil(len(places) / columns)
    width_in, height_in = spec.panel_in
    figure, grid = new_panels(
        lines,
        columns,
        width_in=max(5.6, width_in * columns + 0.4),
        height_in=height_in * lines + 0.1,
        sharey="row" if spec.share_y and spec.across == 1 else False,
    )
    for place, axes in enumerate(chain(*grid)):
        if place >= len(places):
            axes.set_visible(False)
            continue
        row, panel = places[place]
        _draw_panel(axes, marks[(marks["row"] == row) & (marks["panel"] == panel)], marks, spec)
        _label(axes, spec, row)
        if place < len(panels):
            axes.set_title(panel, fontsize=10)
        if place + columns >= len(places):
            axes.set_xlabel(spec.x)
        if panel == panels[0]:
            axes.set_ylabel(spec.y[row])
    if norm:
        levels = sorted(set(marks["colour"].dropna()))
        ticks = levels if len(levels) <= MOST_LEVELS else None
        bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=figure.axes, ticks=ticks, pad=0.02)
        bar.set_label(spec.colour)
    legend_above(figure)
    return figure


def _draw_panel(axes: Axes, marks: pd.DataFrame, of_all: pd.DataFrame, spec: LineFigure) -> None:
    groups = list(spec.groups or dict.fromkeys(of_all["group"].dropna()))
    shift = {
        group: ASIDE ** (place - (len(groups) - 1) / 2) if spec.dodge else 1.0
        for place, group in enumerate(groups)
    }
    several = of_all["group"].nunique() > MOST_NAMED
    marks = marks.assign(group=marks["group"].fillna(""))
    keys = dict.fromkeys(zip(marks["kind"], marks["group"], strict=True))
    for kind, group in keys:
        part = marks[(marks["kind"] == kind) & (marks["group"] == group)]
        place = groups.index(group) if group in groups else 0
        look = {
            "color": PALE if several else group_colour(place),
            "marker": "" if several else GROUP_MARKERS[place % len(GROUP_MARKERS)],
            "linestyle": group_line(place),
            "label": "_" if several or not group else group,
        }
        if spec.colour and part["shade"].notna().any():
            look |= {"color": part["shade"].iloc[0], "linestyle": "-"}
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
    axes.plot(part["x"], part["y"], linewidth=1.2, markersize=4.5, **look)


def _mark(look: dict[str, Any]) -> dict[str, Any]:
    return {name: look[name] for name in ("color", "marker", "label")}


def _draw_points(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    _draw_bars(axes, part, "0.45")
    bars = part.dropna(subset=["left", "right"])
    axes.hlines(bars["y"], bars["left"], bars["right"], colors="0.45", linewidth=0.7)
    shades = list(part["shade"]) if "shade" in part else look["color"]
    style: dict[str, Any] = {"edgecolors": "black", "linewidths": 0.5, "zorder": 3}
    axes.scatter(
        part["x"], part["y"], c=shades, s=34, marker=look["marker"], label=look["label"], **style
    )


def _draw_path(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    if "shade" in part:
        look = look | {"label": "_"}
    axes.plot(part["x"], part["y"], linewidth=0.9, **look | {"marker": ""})
    hollow = part["hollow"].astype(bool)
    for chosen, opacity in ((~hollow, 1.0), (hollow, 0.35)):
        places = part[chosen]["x"], part[chosen]["y"]
        axes.plot(*places, "o", markersize=3, color=look["color"], alpha=opacity)
    end = part.iloc[-1]
    axes.plot(end["x"], end["y"], "o", markersize=6.5, mfc="none", mec=look["color"])


def _draw_faint(axes: Axes, part: pd.DataFrame, _: dict[str, Any]) -> None:
    axes.plot(part["x"], part["y"], color=PALE, linewidth=0.8)


def _draw_overall(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    axes.plot(part["x"], part["y"], color="black", linewidth=2.2, label=look["label"])


def _draw_printed(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    colour, marker, line = PRINTED
    axes.plot(part["x"], part["y"], line, color=colour, marker=marker, label=look["label"])


def _draw_bars(axes: Axes, part: pd.DataFrame, colour: str) -> None:
    bars = part.dropna(subset=["low", "high"])
    axes.vlines(bars["x"], bars["low"], bars["high"], colors=colour, linewidth=1.1)


def _draw_curve(axes: Axes, part: pd.DataFrame, look: dict[str, Any]) -> None:
    x, colour = part["x"].astype(float), look["color"]
    axes.plot(x, part["y"], linewidth=1.2, **look | {"marker": ""})
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


def _draw_band(axes: Axes, part: pd.DataFrame, _: dict[str, Any]) -> None:
    for low, high in zip(part["low"], part["high"], strict=True):
        axes.axhspan(low, high, color="0.92", zorder=0, linewidth=0)


KINDS = {
    "trial": _draw_trials,
    "mean": _draw_means,
    "joined": _draw_joined,
    "faint": _draw_faint,
    "overall": _draw_overall,
    "point": _draw_points,
    "path": _draw_path,
    "printed": _draw_printed,
    "curve": _draw_curve,
    "prediction": _draw_predictions,
    "reference": _draw_reference,
    "bound": _draw_bound,
    "range": _draw_range,
    "band": _draw_band,
}
"""How marks are drawn: pale dots; means with bars, alone or joined by a line; a pale line; a thick
line; large points in colours with bars along x and y; a line with dots, pale if hollow, and a ring
at its end; printed values; a line with a band; crosses; a horizontal line with a band; a dotted
horizontal line; a shaded range of x; one of y."""
COLUMNS = (
    "kind", "row", "panel", "group", "x", "y", "low", "high", "left", "right", "text", "trial_id",
    "hollow", "colour",
)  # fmt: skip


def _label(axes: Axes, spec: LineFigure, row: str) -> None:
    """Scale the axes and put their ticks."""
    logarithmic = {"x": spec.logarithmic_x, "y": row in spec.logarithmic_y}
    for name in (name for name in ("x", "y") if logarithmic[name]):
        axis = make_logarithmic(axes, name)
        low, high = axis.get_view_interval()
        subs = next(subs for most, subs in TICKS.items() if high <= most * low)
        axis.set_major_locator(LogLocator(subs=subs))
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
