"""The figure of `rank`: the singular values of matrices, and where there are several, their ranks
side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator, NullLocator
from numpy.typing import NDArray

from orchestrator.report import formats
from orchestrator.report.figures import (
    COLOURS,
    GROUP_MARKERS,
    LIMIT,
    OURS,
    Drawing,
    draw_as,
    group_colour,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.sections.spectra import shown_indices
from trainables.errors import UserError
from trainables.measurements import RANKS, Spectrum
from trainables.trial_folder import write_file

DRAWN = (*RANKS, "kl_rank_bound_1e-1")
PANEL_WIDTH_IN, HEIGHT_IN = 4.6, 4.0
WIDE_STEPS = 20
"""Greatest over least step from which steps are on a logarithmic axis."""

Ranked = tuple[Mapping[str, Any], Spectrum]
"""What `rank_file` reports, and the singular values."""


def write_rank_figure(
    path: Path, ranked: Sequence[Ranked], *, names: Sequence[str], steps: Sequence[int]
) -> None:
    """Write the figure in the format that the path ends in (svg, png, pdf). `names` are those of
    the matrices; `steps` the training steps, ascending, or empty. Raises UserError where it cannot
    be written."""
    drawing = Drawing(name=path.stem, caption="", draw=lambda: _draw(ranked, names, steps))
    content = draw_as(drawing, path.suffix.removeprefix("."))
    try:
        write_file(path, content, durable=False)
    except OSError as error:
        raise UserError(
            f"The figure cannot be written to {path} ({error.strerror}): name another file with "
            f"--figure."
        ) from error


def _draw(ranked: Sequence[Ranked], names: Sequence[str], steps: Sequence[int]) -> Figure:
    several = len(ranked) > 1
    columns = 2 if several else 1
    figure, panels = new_panels(1, columns, width_in=PANEL_WIDTH_IN * columns, height_in=HEIGHT_IN)
    labels = [f"step {step:,}" for step in steps] or list(names)
    _draw_spectra(panels[0][-1], ranked, labels)
    if several:
        _draw_ranks(panels[0][0], [report for report, _ in ranked], labels, steps)
        handles, texts = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, texts, loc="outside upper left", ncols=4, frameon=False, fontsize=8)
    return figure


def _draw_ranks(
    axes: Axes, reports: Sequence[Mapping[str, Any]], labels: Sequence[str], steps: Sequence[int]
) -> None:
    x = np.array(steps or range(1, len(reports) + 1), dtype=float)
    drawn = [rank for rank in DRAWN if any(report.get(rank) is not None for report in reports)]
    for place, rank in enumerate(drawn):
        there = [i for i, report in enumerate(reports) if report.get(rank) is not None]
        points = np.array([(x[i], reports[i][rank]) for i in there])
        look: dict[str, Any] = {
            "color": group_colour(place),
            "marker": GROUP_MARKERS[place],
            "markersize": 4,
        }
        axes.plot(*points.T, linewidth=1.2, label=_title(rank), **look)
        name_marks(
            axes, points, [f"{labels[i]}\n{_title(rank)} {reports[i][rank]:,.6g}" for i in there]
        )
    full = [min(report["rank_rows"], report["rank_columns"]) for report in reports]
    axes.plot(x, full, color=LIMIT, linestyle="--", linewidth=1, label="full rank")
    axes.set_ylim(bottom=0)
    axes.set_ylabel("rank")
    axes.set_xlabel("training step" if steps else "file, in the order given")
    _set_ticks(axes, x, logarithmic=bool(steps))


def _set_ticks(axes: Axes, x: NDArray[np.float64], *, logarithmic: bool) -> None:
    """Of x, ascending: logarithmic, but for a zero, where that is allowed and the values are far
    apart."""
    positive = x[x > 0]
    if logarithmic and len(positive) > 1 and positive[-1] / positive[0] >= WIDE_STEPS:
        least, last = positive[0], positive[-1]
        axes.set_xscale("symlog", linthresh=least)
        axes.set_xlim(min(x[0], least) * 0.7 - least * 0.2, last * 1.5)
        decades = 10.0 ** np.arange(math.ceil(math.log10(least)), math.floor(math.log10(last)) + 1)
        axes.set_xticks([*x[x == 0], *decades])
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
    axes.xaxis.set_major_formatter(
        lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
    )


def _draw_spectra(axes: Axes, ranked: Sequence[Ranked], labels: Sequence[str]) -> None:
    colours = COLOURS(np.linspace(0, 0.9, len(ranked))) if len(ranked) > 1 else [OURS[0]]
    ends = (0, len(ranked) - 1)
    for place, ((report, spectrum), label, colour) in enumerate(
        zip(ranked, labels, colours, strict=True)
    ):
        indices = shown_indices(len(spectrum.singular_values))
        values = spectrum.singular_values[indices]
        axes.plot(
            indices + 1, values, color=colour, linewidth=1.2, label=label if place in ends else None
        )
        rank = f"{label}\nPress rank {report['press_rank']:,}"
        name_marks(axes, [np.column_stack([indices + 1, values])], [rank])
    make_logarithmic(axes, "x")
    if any(spectrum.singular_values[0] > 0 for _, spectrum in ranked):
        make_logarithmic(axes, "y")
    axes.set_xlabel("index of the singular value")
    axes.set_ylabel("singular value")
    axes.legend(loc="lower left", fontsize=8, frameon=True, edgecolor="0.8")


def _title(rank: str) -> str:
    return "KL-rank bound (0.1 nats)" if rank == "kl_rank_bound_1e-1" else formats.title(rank)
