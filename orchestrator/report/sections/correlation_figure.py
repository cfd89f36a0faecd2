"""Scatter plot of a correlation: a point per cell, with bars over its seeds (Fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.analysis import (
    BETTER_HALF,
    CELLS,
    PUBLISHED_WINDOW,
    CorrelationNumbers,
    rows,
    tidy,
)
from orchestrator.report import formats
from orchestrator.report.line_figure import LineFigure

WINDOWS = {PUBLISHED_WINDOW: "the published window", BETTER_HALF: "the better half"}
INSIDE, OUTSIDE = "inside the window", "outside"


def over(line: Any) -> str:
    """Return a phrase that names the cells of a correlation."""
    if line.window_low is None:
        return "all cells" if line.over == CELLS else str(line.over)
    low, high = (formats.cell(line.y, end) for end in (line.window_low, line.window_high))
    return f"{WINDOWS[line.over]} ({formats.title(line.y)} {low} to {high})"


def correlation_drawings(numbers: CorrelationNumbers) -> Iterator[LineFigure]:
    """Yield the scatter plot if it has a point."""
    lines, request = list(rows(numbers.lines)), numbers.request
    if not lines[0].n:
        return
    window = next(line for line in lines if line.window_low is not None)
    x, y = formats.title(request.x), formats.title(request.y)
    colour = formats.title(numbers.colour_by) if numbers.colour_by else ""
    several = len(numbers.components) > 0
    caption = f"{formats.capital(y)} against {x}, one point per {'cell' if several else 'trial'}"
    if several:
        seeds = formats.bounds(lines[0].seeds_least, lines[0].seeds_most)
        caption += f", the mean of {seeds} seeds"
    caption += f", coloured by {colour}" if colour else ""
    if several:
        caption += (
            ". Bars: one standard deviation over seeds, without a seed's common effect on all "
            "cells. Pale points: single trials"
        )
    yield LineFigure(
        name=f"{request.y}_against_{request.x}",
        caption=f"{caption}. Grey band: {over(window)}.",
        marks=tidy(_marks(numbers, window)),
        x=formats.capital(x),
        y={"": formats.capital(y)},
        groups=(INSIDE, OUTSIDE),
        colour=colour,
        logarithmic_x=False,
    )


def _marks(numbers: CorrelationNumbers, window: Any) -> Iterator[dict[str, Any]]:
    x, y = numbers.request.x, numbers.request.y
    low, high = window.window_low, window.window_high
    yield {"kind": "band", "low": low, "high": high}
    # Trials come first, so that cells and their tooltips are on top.
    for trial in numbers.points.to_dict("records"):
        text = formats.described(trial["name"], {x: trial[x], y: trial[y]})
        yield {"kind": "trial", "x": trial[x], "y": trial[y], "text": text}
    for cell in numbers.cells.to_dict("records"):
        mark = {
            "kind": "point",
            "group": INSIDE if low <= cell[y] <= high else OUTSIDE,
            "x": cell[x],
            "y": cell[y],
            "colour": cell[numbers.colour_by] if numbers.colour_by else None,
        }
        if cell["seeds"] > 1:
            x_sd, y_sd = cell[f"{x}_sd"], cell[f"{y}_sd"]
            mark |= {"left": cell[x] - x_sd, "right": cell[x] + x_sd}
            mark |= {"low": cell[y] - y_sd, "high": cell[y] + y_sd}
            metrics = {x: cell[x], y: cell[y]}
            mark["text"] = formats.described(cell["group"], metrics, trials=cell["seeds"])
        yield mark
