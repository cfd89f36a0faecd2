"""Forest plots: one row per estimate with its interval, next to trials and published values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import NDArray

from orchestrator.analysis import HIGH, LOW, rows
from orchestrator.report import formats
from orchestrator.report.columns import estimate
from orchestrator.report.figures import (
    GROUP_MARKERS,
    OURS,
    PRINTED,
    Drawing,
    group_colour,
    legend_above,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks

if TYPE_CHECKING:
    import pandas as pd

NUMBERS = ["value", "low", "high"]
COLUMNS = ("panel", "name", "series", "value", "low", "high", "text")
TRIALS, MEANS = "a trial", "mean"
"""Series names of our trials and our means. Names of published series begin with `PUBLISHED`."""
PUBLISHED = "published"
MOST_PANELS = 3
PANEL_IN, ROW_IN, LETTER_IN = {1: 4.4, 2: 3.6, 3: 2.4}, 0.13, 0.085
SPREAD = 0.7
"""Share of a row's height over which its series are spread."""
WIDEST = 100.0
"""A logarithmic axis ends at most this factor away from the null value. Arrows mark intervals that
extend further."""


@dataclass(frozen=True, kw_only=True)
class Forest(Drawing):
    """Up to three panels side by side, with the same rows. A dash marks a row without a value."""

    marks: pd.DataFrame
    """One mark per row: `name` (its row in the plot), `series`, `value`. Optional: `panel`, `low`
    and `high` (ends of the bar, maybe infinite), `text` (tooltip). A mark without a series makes an
    empty row."""
    labels: Mapping[str, str]
    """Panel -> label of its x axis."""
    null: float | None = None
    """Estimate that means no effect. A dashed line marks it."""
    logarithmic: bool = False

    def draw(self) -> Figure:
        """Return the figure."""
        marks = self.marks.reindex(columns=COLUMNS).astype(object)
        for name in ("panel", "name"):
            marks[name] = marks[name].fillna("").map(formats.setting)
        names = list(dict.fromkeys(marks["name"]))
        series = list(dict.fromkeys(marks.dropna(subset=["series", "value"])["series"]))
        letters = max(len(part) for name in names for part in name.split("\n"))
        columns = min(len(self.labels), 2 if len(self.labels) == 4 else MOST_PANELS)
        shares = marks.groupby("panel")["series"].nunique().max()
        parts = max(name.count("\n") for name in names)
        row_in = max(0.3 + 0.15 * parts, ROW_IN * (1 + shares))
        figure, panels = new_panels(
            len(self.labels),
            columns,
            width_in=max(5.6, PANEL_IN[columns] * columns + LETTER_IN * letters),
            row_in=0.6 + row_in * len(names),
            sharey=True,
        )
        for axes, (panel, label) in zip(panels, self.labels.items(), strict=True):
            self._draw_panel(axes, marks[marks["panel"] == panel], names, series)
            axes.set_xlabel(fill(label, round(PANEL_IN[columns] / LETTER_IN)))
            axes.set_title(panel if panel != label else "", fontsize=10)
        panels[0].set_yticks(range(len(names)), names)
        panels[0].set_ylim(len(names) - 0.5, -0.5)
        if len(series) > 1:
            legend_above(figure)
        return figure

    def _draw_panel(
        self, axes: Axes, marks: pd.DataFrame, names: Sequence[str], series: Sequence[str]
    ) -> None:
        axes.tick_params(axis="y", length=0)
        axes.set_axisbelow(True)
        axes.grid(axis="y", color="0.93")
        if self.null is not None:
            axes.axvline(self.null, color="0.4", linewidth=0.9, linestyle="--", zorder=1)
        marks_with_value = marks.dropna(subset=["series", "value"])
        self._scale(axes, marks_with_value[NUMBERS].to_numpy(dtype=float))
        here = [one for one in series if (marks_with_value["series"] == one).any()]
        for index, one in enumerate(here):
            of_series = marks_with_value[marks_with_value["series"] == one]
            offset = SPREAD * ((index + 0.5) / len(here) - 0.5)
            y = [names.index(name) + offset for name in of_series["name"]]
            _draw_series(axes, of_series, y, _look(one, series) | {"label": one})
        drawn = set(marks_with_value["name"])
        across = axes.get_yaxis_transform()
        for height, name in enumerate(names):
            if name not in drawn:
                axes.text(0.5, height, formats.DASH, transform=across, va="center", color="0.4")

    def _scale(self, axes: Axes, values: NDArray[np.float64]) -> None:
        finite = [*values[np.isfinite(values)], *([] if self.null is None else [self.null])]
        if not finite:
            return
        low, high = min(finite), max(finite)
        if self.logarithmic and self.null is not None:
            axes.set_xlim(max(low, self.null / WIDEST) / 1.15, min(high, self.null * WIDEST) * 1.15)
            make_logarithmic(axes, "x")
            axes.xaxis.set_minor_locator(NullLocator())
        else:
            margin = 0.06 * (high - low or 1.0)
            axes.set_xlim(low - margin, high + margin)
            axes.xaxis.set_major_locator(MaxNLocator(nbins=4, min_n_ticks=2))
            axes.xaxis.set_major_formatter("{x:,.7g}")


def estimates(frame: pd.DataFrame, key: str, *, name: str) -> pd.DataFrame:
    """Return the marks of a forest plot, one per row of `frame`.

    Column `key` has the estimates and column `name` the row labels. Column `series` has the series;
    without this column, `key` is the series.
    """
    texts = [f"{formats.setting(getattr(row, name))}: {estimate(row, key)}" for row in rows(frame)]
    ends = {"value": frame[key], "low": frame[key + LOW], "high": frame[key + HIGH]}
    series = frame.get("series", key)
    return frame.assign(name=frame[name], series=series, text=texts, **ends)


def _draw_series(axes: Axes, marks: pd.DataFrame, y: Sequence[float], look: dict[str, Any]) -> None:
    numbers = marks[NUMBERS].to_numpy(dtype=float)
    ends = low_end, high_end = axes.get_xlim()
    x, low, high = np.clip(numbers, *ends).T
    axes.hlines(y, low, high, color=look["color"], linewidth=1.3, zorder=2)
    axes.plot(x, y, linestyle="none", clip_on=False, zorder=3, **look)
    for end, arrow, is_beyond in zip(
        ends, "<>", (numbers < low_end, numbers > high_end), strict=True
    ):
        for height in np.array(y)[is_beyond.any(axis=1)]:
            axes.plot(end, height, arrow, color=look["color"], markersize=5, clip_on=False)
    name_marks(axes, list(zip(x, y, strict=True)), list(marks["text"].fillna("")))


def _look(one: str, series: Sequence[str]) -> dict[str, Any]:
    if one == TRIALS:
        opacity = 0.5 if any(name.startswith(MEANS) for name in series) else 1.0
        return {"color": OURS, "marker": "o", "markersize": 4.5, "alpha": opacity, "mew": 0}
    if one.startswith(MEANS):
        return {"color": OURS, "marker": "o", "markersize": 5.5}
    if one.startswith(PUBLISHED):
        index = [name for name in series if name.startswith(PUBLISHED)].index(one)
        return {"color": PRINTED, "marker": "^Dv"[index % 3], "markersize": 5.5}
    index = series.index(one)
    return {"color": group_colour(index), "marker": GROUP_MARKERS[index], "markersize": 4.5}
