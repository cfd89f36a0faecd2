"""The figure of rank over training: a line a setting in the plane of rank and perplexity."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from orchestrator.analysis import RankTraining, TrainingPath
from orchestrator.report import formats
from orchestrator.report.figures import (
    ABOVE,
    COLOURS,
    GROUP_LINES,
    HEIGHT_IN,
    Drawing,
    group_colour,
    group_line,
    make_logarithmic,
    new_figure,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.palette import GROUP_COLOURS

MOST_NAMED = len(GROUP_COLOURS) * len(GROUP_LINES)
"""Settings that colours and lines tell apart; more are drawn alike."""
MOST_TICKS = 10
LEGEND_COLUMNS, LEGEND_PT, LEGEND_LINE_IN = 3, 7.5, 0.16
TICKS = {5.0: (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 7.0), 50.0: (1.0, 2.0, 3.0, 5.0)}
"""Greatest over least value of an axis up to which it has ticks at these numbers; beyond, at powers
of ten."""


def rank_training_drawing(numbers: RankTraining) -> Drawing:
    """Return validation perplexity against rank, a point an epoch."""
    colours = f", coloured by {formats.title(numbers.colour_by)}" if numbers.colour_by else ""
    seeds = {path.seeds for path in numbers.paths}
    mean = f", the mean of {formats.bounds(min(seeds), max(seeds))} seeds" if max(seeds) > 1 else ""
    return Drawing(
        name="rank_over_training",
        caption=f"Validation perplexity against {formats.title(numbers.rank)} from epoch to epoch, a line a "
        f"setting{mean}{colours}; the ring is the last epoch"
        f"{', pale points those with averaged weights' if numbers.averaged else ''}.",
        draw=partial(_draw_plane, numbers),
    )


def _draw_plane(numbers: RankTraining) -> Figure:
    named = 0 if numbers.colour_by or len(numbers.paths) > MOST_NAMED else len(numbers.paths)
    top_in = 0.15 + LEGEND_LINE_IN * -(-named // LEGEND_COLUMNS)
    figure, axes = new_figure(height_in=HEIGHT_IN + top_in, top_in=top_in)
    for place, path in enumerate(numbers.paths):
        rank_T, perplexity_T = np.exp(path.log_rank_T), np.exp(path.log_perplexity_T)
        look = _look(numbers, place)
        axes.plot(rank_T, perplexity_T, linewidth=0.9, label=path.group, **look)
        colour = look["color"]
        axes.plot(rank_T[: path.plain], perplexity_T[: path.plain], "o", markersize=3, color=colour)
        axes.plot(
            rank_T[path.plain :],
            perplexity_T[path.plain :],
            "o",
            markersize=3,
            color=colour,
            alpha=0.35,
        )
        axes.plot(
            rank_T[-1],
            perplexity_T[-1],
            "o",
            markersize=6.5,
            markerfacecolor="none",
            markeredgecolor=colour,
        )
        name_marks(axes, zip(rank_T, perplexity_T, strict=True), list(_names(path, numbers.rank)))
    for name in ("x", "y"):
        axis = make_logarithmic(axes, name)
        low, high = axis.get_view_interval()
        ticks = next((subs for most, subs in TICKS.items() if high / low <= most), (1.0,))
        axis.set_major_locator(LogLocator(subs=ticks))
    axes.set_xlabel(formats.capital(formats.title(numbers.rank)))
    axes.set_ylabel("Validation perplexity")
    _explain(figure, axes, numbers)
    return figure


def _names(path: TrainingPath, rank: str) -> Iterator[str]:
    for epoch, *values in zip(
        path.epochs, np.exp(path.log_rank_T), np.exp(path.log_perplexity_T), strict=True
    ):
        metrics = dict(zip((rank, "valid_perplexity"), values, strict=True))
        yield formats.described(f"{path.group}, epoch {epoch}", metrics, trials=path.seeds)


def _look(numbers: RankTraining, place: int) -> dict[str, Any]:
    """Colour and line of a setting's way."""
    path = numbers.paths[place]
    if path.colour is not None:
        shade = float(_norm(numbers.paths)(path.colour))
        return {"color": COLOURS(shade), "linestyle": "-"}
    if len(numbers.paths) > MOST_NAMED:
        return {"color": "0.45", "linestyle": "-"}
    return {"color": group_colour(path.place), "linestyle": group_line(path.place)}


def _norm(paths: tuple[TrainingPath, ...]) -> Normalize:
    colours = [path.colour for path in paths if path.colour is not None]
    return Normalize(min(colours), max(colours))


def _explain(figure: Figure, axes: Axes, numbers: RankTraining) -> None:
    """A bar or a legend of the colours, where they mean something."""
    if numbers.colour_by:
        levels = sorted({path.colour for path in numbers.paths if path.colour is not None})
        ticks = levels if len(levels) <= MOST_TICKS else None
        bar = figure.colorbar(
            ScalarMappable(_norm(numbers.paths), COLOURS), ax=axes, ticks=ticks, pad=0.02
        )
        bar.set_label(formats.title(numbers.colour_by))
    elif len(numbers.paths) <= MOST_NAMED:
        axes.legend(fontsize=LEGEND_PT, **{**ABOVE, "ncols": LEGEND_COLUMNS})
