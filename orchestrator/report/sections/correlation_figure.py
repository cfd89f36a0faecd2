"""The scatter plot of a correlation: a point a cell, with what its seeds add to it (Fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from orchestrator.analysis import CorrelationNumbers, Window
from orchestrator.report import formats
from orchestrator.report.figures import ABOVE, COLOURS, PALE, Drawing, new_figure
from orchestrator.report.hover import name_marks

INSIDE, OUTSIDE = "o", "^"
MOST_TICKS = 10


def correlation_drawings(numbers: CorrelationNumbers) -> Iterator[Drawing]:
    """The scatter plot, where there is a point."""
    line = numbers.lines[0]
    if not line.n:
        return
    window = next((line.window for line in numbers.lines if line.window), None)
    x, y = formats.title(line.x), formats.title(line.y)
    point = "trial" if numbers.seeds is None else "cell"
    caption = f"{formats.capital(y)} against {x}, a point a {point}"
    if numbers.seeds is not None:
        caption += f", the mean of {formats.bounds(*line.seeds)} seeds with bars of one standard deviation over them"
        caption += ", less what a seed does to all cells"
    caption += f", coloured by {formats.title(numbers.colour_by)}" if numbers.colour_by else ""
    caption += "; pale points are single trials" if numbers.seeds is not None else ""
    caption += f". Grey band: {formats.window(window, line.y)}." if window else "."
    yield Drawing(
        name=f"{line.y}_against_{line.x}", caption=caption, draw=partial(_scatter, numbers, window)
    )


def _scatter(numbers: CorrelationNumbers, window: Window | None) -> Figure:
    """Fig. 2 of the paper: x against y, a point a cell, circles where y is in the window, triangles
    elsewhere."""
    figure, axes = new_figure()
    line = numbers.lines[0]
    x, y = (numbers.cells[name].to_numpy(dtype=float) for name in (line.x, line.y))
    inside = np.array([window is None or value in window for value in y], dtype=bool)
    colour = (
        numbers.cells[numbers.colour_by].to_numpy(dtype=float)
        if numbers.colour_by
        else np.zeros(len(x))
    )
    norm = Normalize(colour.min(), colour.max())
    if numbers.seeds is not None:
        _draw_seeds(axes, numbers)
    for chosen, marker in ((inside, INSIDE), (~inside, OUTSIDE)):
        axes.scatter(
            x[chosen], y[chosen], c=colour[chosen], cmap=COLOURS, norm=norm, marker=marker, s=34,
            edgecolors="black", linewidths=0.5, zorder=3,
        )  # fmt: skip
    _name_points(axes, numbers)
    if window is not None:
        axes.axhspan(window.low, window.high, color="0.92", zorder=0, linewidth=0)
        handles = [
            Line2D(
                [],
                [],
                marker=marker,
                linestyle="none",
                color="0.75",
                markeredgecolor="black",
                label=label,
            )
            for marker, label in ((INSIDE, "inside the window"), (OUTSIDE, "outside"))
        ]
        axes.legend(handles=handles, **ABOVE)
    axes.set_xlabel(formats.capital(formats.title(line.x)))
    axes.set_ylabel(formats.capital(formats.title(line.y)))
    if numbers.colour_by:
        levels = np.unique(colour)
        ticks = levels if len(levels) <= MOST_TICKS else None
        bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes, ticks=ticks, pad=0.02)
        bar.set_label(formats.title(numbers.colour_by))
    return figure


def _draw_seeds(axes: Axes, numbers: CorrelationNumbers) -> None:
    """Pale single trials, and bars of one standard deviation over the seeds of each cell that has
    several."""
    line, points = numbers.lines[0], numbers.points
    axes.scatter(points[line.x], points[line.y], s=9, color=PALE, linewidths=0, zorder=1)
    cells = numbers.cells[numbers.cells["seeds"] > 1]
    axes.errorbar(
        cells[line.x], cells[line.y], xerr=cells[f"{line.x}_sd"], yerr=cells[f"{line.y}_sd"],
        fmt="none", ecolor="0.45", elinewidth=0.7, zorder=2,
    )  # fmt: skip


def _name_points(axes: Axes, numbers: CorrelationNumbers) -> None:
    """Single trials by their names; those on top, the cells of several, by theirs."""
    metrics = [numbers.lines[0].x, numbers.lines[0].y]
    trials, cells = numbers.points, numbers.cells[numbers.cells["seeds"] > 1]
    names = [
        formats.described(trial["name"], dict(trial[metrics])) for _, trial in trials.iterrows()
    ]
    name_marks(axes, trials[metrics].to_numpy(), names, list(trials["trial_id"]))
    names = [
        formats.described(cell["group"], dict(cell[metrics]), trials=cell["seeds"])
        for _, cell in cells.iterrows()
    ]
    name_marks(axes, cells[metrics].to_numpy(), names)
