"""Estimates with their intervals, a row each, beside the value that they are held against: a forest
plot."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullLocator

from orchestrator.analysis import Statistic
from orchestrator.report import formats
from orchestrator.report.figures import GROUP_MARKERS, group_colour, make_logarithmic, new_panels
from orchestrator.report.hover import name_marks

PANEL_IN, ROW_IN, LETTER_IN = 4.4, 0.2, 0.085
SPREAD = 0.7
"""Share of a row over which its marks lie."""
WIDEST = 100.0
"""The factor from the null value beyond which a logarithmic axis does not reach: an end that lies
there, or at infinity, is an arrow."""


TICKS = (
    (0.01, 0.1, 1.0, 10.0, 100.0),
    (0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0),
    (0.25, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0),
    (0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25, 1.5),
    (0.94, 0.96, 0.98, 1.0, 1.02, 1.04, 1.06),
)
"""Of a logarithmic axis around 1, the coarsest first."""
FEWEST_TICKS = 4


@dataclass(frozen=True, kw_only=True)
class ForestRow:
    """One thing that is estimated, in one or several ways."""

    name: str
    estimates: Mapping[str, Statistic]
    """By what each is called in the legend."""


def draw_forest(
    panels: Mapping[str, Sequence[ForestRow]], *, label: str, null: float, logarithmic: bool = False
) -> Figure:
    """A panel a title; rows that have no value keep their place, with a dash."""
    rows = max(len(forest) for forest in panels.values())
    kinds = list(
        dict.fromkeys(
            kind for forest in panels.values() for row in forest for kind in row.estimates
        )
    )
    letters = max(len(row.name) for forest in panels.values() for row in forest)
    figure, grid = new_panels(
        1,
        len(panels),
        width_in=max(5.6, PANEL_IN * len(panels) * 0.8 + LETTER_IN * letters * len(panels)),
        height_in=1.1 + rows * ROW_IN * (1 + len(kinds)),
    )
    for axes, (title, forest) in zip(grid[0], panels.items(), strict=True):
        _draw_panel(axes, forest, kinds, null=null, logarithmic=logarithmic)
        axes.set_title(title, fontsize=10)
        axes.set_xlabel(label)
    if len(kinds) > 1:
        handles, labels = grid[0][0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=9
        )
    return figure


def _draw_panel(
    axes: Axes, forest: Sequence[ForestRow], kinds: Sequence[str], *, null: float, logarithmic: bool
) -> None:
    axes.set_yticks(range(len(forest)), [row.name for row in forest])
    axes.set_ylim(len(forest) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.axvline(null, color="0.4", linewidth=0.9, linestyle="--", zorder=1)
    if logarithmic:
        make_logarithmic(axes, "x")
    low, high = _ends(forest, null=null, logarithmic=logarithmic)
    axes.set_xlim(low, high)
    if logarithmic:
        inside = ([tick for tick in ticks if low <= tick <= high] for ticks in TICKS)
        axes.set_xticks(next((ticks for ticks in inside if len(ticks) >= FEWEST_TICKS), [null]))
        axes.xaxis.set_minor_locator(NullLocator())
    for place, kind in enumerate(kinds):
        offset = SPREAD * ((place + 0.5) / len(kinds) - 0.5)
        label = kind
        for row, line in enumerate(forest):
            estimate = line.estimates.get(kind, Statistic())
            style = {"color": group_colour(place), "marker": GROUP_MARKERS[place]}
            _draw_estimate(
                axes, estimate, row + offset, style, label=label, name=f"{line.name}\n{kind}"
            )
            label = "_"
    for row, line in enumerate(forest):
        if all(estimate.value is None for estimate in line.estimates.values()):
            axes.text(null, row, formats.DASH, ha="center", va="center", color="0.4")


def _draw_estimate(
    axes: Axes, estimate: Statistic, y: float, style: dict[str, Any], *, label: str, name: str
) -> None:
    low, high = axes.get_xlim()
    value = estimate.value
    axes.plot([], [], linestyle="none", markersize=4.5, label=label, **style)
    if value is None:
        return
    if estimate.interval is not None:
        ends = [min(max(end, low), high) for end in (estimate.interval.low, estimate.interval.high)]
        axes.plot(ends, [y, y], color=style["color"], linewidth=1.3, zorder=2)
        for end, beyond, arrow in zip(
            ends, (estimate.interval.low < low, estimate.interval.high > high), "<>", strict=True
        ):
            if beyond:
                axes.plot(
                    [end], [y], arrow, color=style["color"], markersize=5, clip_on=False, zorder=3
                )
    at = min(max(value, low), high)
    axes.plot([at], [y], linestyle="none", markersize=4.5, clip_on=False, zorder=3, **style)
    name_marks(axes, [(at, y)], [f"{name}: {formats.ranged(estimate)}"])


def _ends(forest: Sequence[ForestRow], *, null: float, logarithmic: bool) -> tuple[float, float]:
    """Of the axis: everything finite, with a margin, and the null value."""
    values = [null]
    for row in forest:
        for estimate in row.estimates.values():
            interval = estimate.interval
            values += [estimate.value if estimate.value is not None else null]
            values += [interval.low, interval.high] if interval else []
    values = [value for value in values if math.isfinite(value)]
    if not logarithmic:
        margin = 0.06 * (max(values) - min(values) or 1.0)
        return min(values) - margin, max(values) + margin
    low, high = max(min(values), null / WIDEST), min(max(values), null * WIDEST)
    return low / 1.15, high * 1.15
