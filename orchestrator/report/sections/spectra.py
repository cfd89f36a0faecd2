"""The singular values of trials' log-P matrices in one figure (Fig. 7 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator
from numpy.typing import NDArray

from orchestrator.analysis import Spectrum
from orchestrator.report import formats
from orchestrator.report.figures import (
    COLOURS,
    LIMIT,
    Drawing,
    group_colour,
    group_line,
    make_logarithmic,
    new_figure,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.sections.section import Section
from orchestrator.words import counted

SHOWN_POINTS = 160
PAPER_LENGTH, PAPER_END, PAPER_TOP = 10_000, 500, 0.2
"""What Fig. 7 shows: the first 500 of PTB's 10,000 indices, normalised values up to 0.2."""
LEAST_SEEN = 0.02
"""Share of a linear axis below which a value lies on its end."""
NAMED_STEP = 4
"""So many points of a curve are one of what a pointer meets."""
WIDE_SPREAD = 10
"""Greatest over least rank from which colours go by the logarithm."""


def spectra_section(spectra: Sequence[Spectrum]) -> Section:
    """The figure of a Spectra request, twice: cut as in the paper, and whole with logarithmic
    axes."""
    colours = "group" if any(spectrum.group for spectrum in spectra) else "Press rank"
    lines = counted(len(spectra), "trial")
    if colours == "Press rank":
        lines = f"{counted(len(spectra), 'setting')}, one trial each"
    caption = f"Normalised singular values of log P, {lines}, coloured by {colours}"
    start, end, _ = linear_window(spectra)
    linear = f"indices {start} to {end:,}" if start else "cut like Fig. 7"
    return Section(
        kind="spectra",
        heading="Spectra",
        drawings=tuple(
            Drawing(
                name=f"spectra_{scale}",
                caption=f"{caption}, {words}.",
                draw=partial(draw_spectra, spectra, logarithmic=scale == "logarithmic"),
            )
            for scale, words in (("linear", linear), ("logarithmic", "logarithmic"))
        ),
        wide=False,
    )


def shown_indices(length: int, *, points: int = SHOWN_POINTS) -> NDArray[np.int64]:
    """At most 2 `points` of the indices 0 .. length - 1, close together at the start and never far
    apart: every curve keeps its shape on a linear and on a logarithmic axis, and the page stays
    small."""
    if length <= points:
        return np.arange(length)
    log_spaced = np.geomspace(1, length, points) - 1
    even = np.linspace(0, length - 1, points)
    return np.unique(np.round(np.concatenate([log_spaced, even])).astype(np.int64))


def draw_spectra(spectra: Sequence[Spectrum], *, logarithmic: bool) -> Figure:
    """Normalised singular values over their index, a line a trial, coloured by Press rank.

    The logarithmic one has the Press tolerance as a dashed line; on the linear one it would lie on
    the axis."""
    figure, axes = new_figure(left_in=0.95, right_in=0.25, top_in=0.15)
    curves = [
        _curve(spectrum, last=None if logarithmic else linear_window(spectra)[1])
        for spectrum in spectra
    ]
    groups = any(spectrum.group for spectrum in spectra)
    if groups:
        _draw_groups(axes, spectra, curves)
    else:
        _draw_by_rank(figure, axes, spectra, curves)
    _limits(axes, spectra, logarithmic=logarithmic)
    names = [
        formats.described(spectrum.name, {"press_rank": spectrum.press_rank})
        for spectrum in spectra
    ]
    name_marks(
        axes,
        [curve[::NAMED_STEP] for curve in curves],
        names,
        [spectrum.trial_id for spectrum in spectra],
    )
    axes.set_xlabel("index of the singular value")
    axes.set_ylabel("singular value / largest one")
    if axes.get_legend_handles_labels()[0]:
        axes.legend(loc="upper right", frameon=True, edgecolor="0.8")
    return figure


def _draw_by_rank(
    figure: Figure, axes: Axes, spectra: Sequence[Spectrum], curves: Sequence[NDArray[np.float64]]
) -> None:
    ranks = np.array([spectrum.press_rank for spectrum in spectra])
    norm = _colour_scale(ranks)
    axes.add_collection(
        LineCollection(curves, array=ranks, cmap=COLOURS, norm=norm, linewidths=0.9, alpha=0.85)
    )
    bar = figure.colorbar(ScalarMappable(norm, COLOURS), ax=axes, pad=0.02, label="Press rank")
    bar.ax.minorticks_off()
    if isinstance(norm, LogNorm):
        bar.ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    else:
        bar.ax.yaxis.set_major_locator(MaxNLocator(nbins=8, integer=True))
    bar.ax.yaxis.set_major_formatter("{x:g}")


def _draw_groups(
    axes: Axes, spectra: Sequence[Spectrum], curves: Sequence[NDArray[np.float64]]
) -> None:
    named = set()
    for spectrum, curve in zip(spectra, curves, strict=True):
        axes.plot(
            *curve.T,
            color=group_colour(spectrum.place),
            linestyle=group_line(spectrum.place),
            linewidth=1.2,
            label=None if spectrum.group in named else spectrum.group,
        )
        named.add(spectrum.group)


def _colour_scale(ranks: NDArray[np.float64]) -> Normalize:
    low, high = float(ranks.min()), float(ranks.max())
    if low > 0 and high / low >= WIDE_SPREAD:
        return LogNorm(low, high)
    return Normalize(low, high if high > low else low + 1)


def _curve(spectrum: Spectrum, *, last: int | None) -> NDArray[np.float64]:
    values = spectrum.values[:last]
    indices = shown_indices(len(values))
    curve: NDArray[np.float64] = np.column_stack(
        [indices + 1, values[indices] / spectrum.values[0]]
    )
    return curve


def linear_window(spectra: Sequence[Spectrum]) -> tuple[int, int, float]:
    """The first and last index and the greatest value of a linear figure: those of Fig. 7 for
    spectra as long as there.

    Of smaller matrices the largest value is left out, which alone would fill the axis, and the last
    index is where no value can be told from zero."""
    if max(len(spectrum.values) for spectrum in spectra) >= PAPER_LENGTH:
        return 0, PAPER_END, PAPER_TOP
    below = [spectrum.values[1:] / spectrum.values[0] for spectrum in spectra]
    top = max((float(values[0]) for values in below if len(values)), default=1.0)
    end = max(1 + int((values >= LEAST_SEEN * top).sum()) for values in below)
    return 2, max(end, 3), 1.05 * top


def _limits(axes: Axes, spectra: Sequence[Spectrum], *, logarithmic: bool) -> None:
    if not logarithmic:
        start, end, top = linear_window(spectra)
        axes.set(xlim=(start, end), ylim=(0, top))
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return
    make_logarithmic(axes, "x")
    make_logarithmic(axes, "y")
    tolerances = sorted(
        {spectrum.relative_tolerance for spectrum in spectra if spectrum.relative_tolerance}
    )
    for i, tolerance in enumerate(tolerances):
        axes.axhline(
            tolerance,
            color=LIMIT,
            linestyle="--",
            linewidth=1.2,
            label=None if i else "Press tolerance",
        )
    least = min(float(spectrum.values[-1] / spectrum.values[0]) for spectrum in spectra)
    # Beyond a hundredth of the tolerance there is only the rounding noise of the measurement.
    floor = tolerances[0] / 100 if tolerances else max(least, 1e-9)
    axes.set_xlim(1, max(len(spectrum.values) for spectrum in spectra))
    axes.set_ylim(max(floor, least / 2) if least > 0 else floor, 1.5)
