"""Singular values of log-P matrices (Fig. 7), and the cost of lower-rank approximations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pandas as pd

from orchestrator.analysis import Spectrum, rows, shown_indices, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, pivot
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell
from orchestrator.words import counted

PAPER_LENGTH, PAPER_END, PAPER_TOP = 10_000, 500, 0.2
"""Fig. 7 shows the first 500 of PTB's 10,000 indices, and normalised values up to 0.2."""
LEAST_SEEN = 0.02
"""Share of a linear axis below which a value looks like zero."""
NOISE = 1e-2
"""Singular values below this share of the Press tolerance are rounding noise."""
LEAST_DRAWN = 1e-9
TOLERANCE = "Press tolerance"


def spectra_section(spectra: Sequence[Spectrum]) -> Section:
    """Return the section of Spectra: a linear and a logarithmic figure."""
    groups = {spectrum.group_index: spectrum.group for spectrum in spectra if spectrum.group}
    colours = "group" if groups else "Press rank"
    lines = f"{counted(len(spectra), 'setting')}, one trial each"
    if groups:
        lines = counted(len(spectra), "trial")
    caption = f"Normalised singular values of log P, {lines}, coloured by {colours}"
    start, end, top = linear_window(spectra)
    linear = f"indices {start} to {end:,}" if start > 1 else "cut like Fig. 7"
    tolerances = sorted({one.relative_tolerance for one in spectra if one.relative_tolerance})
    least = NOISE * tolerances[0] if tolerances else LEAST_DRAWN
    limits = tidy({"kind": "limit", "group": TOLERANCE, "y": limit} for limit in tolerances)
    figures = {
        linear: [_curve(one, start=start, end=end, most=top) for one in spectra],
        "logarithmic": [*(_curve(one, least=least) for one in spectra), limits],
    }
    return Section(
        kind="spectra",
        heading="Spectra",
        drawings=tuple(
            LineFigure(
                name=f"spectra_{words if words == 'logarithmic' else 'linear'}",
                caption=f"{caption}, {words}.",
                marks=pd.concat(marks),
                x="index of the singular value",
                y={"": "singular value / largest one"},
                groups=[groups.get(index, "") for index in range(max(groups, default=-1) + 1)],
                colour="" if groups else colours,
                logarithmic_x=words == "logarithmic",
                logarithmic_y={""} if words == "logarithmic" else (),
            )
            for words, marks in figures.items()
        ),
        wide=False,
    )


def _curve(
    spectrum: Spectrum,
    *,
    start: int = 1,
    end: int | None = None,
    least: float = 0.0,
    most: float = math.inf,
) -> pd.DataFrame:
    values = spectrum.values[:end] / spectrum.values[0]
    indices = shown_indices(len(values))
    marks = {
        "x": indices + 1,
        "y": values[indices],
        "kind": "curve",
        "group": spectrum.group or "",
        "line": spectrum.trial_id,
        "colour": spectrum.press_rank,
        "text": formats.described(spectrum.name, {"press_rank": spectrum.press_rank}),
    }
    points = pd.DataFrame(marks)
    return points[(points["x"] >= start) & points["y"].between(least, most)]


def linear_window(spectra: Sequence[Spectrum]) -> tuple[int, int, float]:
    """Return the first and last index and the largest value of a linear figure.

    Long spectra get the window of Fig. 7. For others, the window leaves out the largest value,
    which would fill the axis, and ends where values look like zero.
    """
    longest = max(len(spectrum.values) for spectrum in spectra)
    if longest >= PAPER_LENGTH:
        return 1, PAPER_END, PAPER_TOP
    below = [spectrum.values[1:] / spectrum.values[0] for spectrum in spectra]
    top = max((float(values[0]) for values in below if len(values)), default=1.0)
    end = max(1 + int((values >= LEAST_SEEN * top).sum()) for values in below)
    return min(2, longest), max(end, 3), top


BOUNDS_NATS = (0.1, 0.01, 0.001)


def kl_curve_section(curves: pd.DataFrame) -> Section:
    """Return the section of a LossByRank request."""
    frame, across = pivot(
        curves,
        index=["group", "n"],
        across="rank",
        cell=lambda point: Cell(formats.number(point.mean, digits=3)),
    )
    wide = Table(
        caption="KL (nats) of the least-squares approximation of rank r (columns), mean over seeds",
        frame=frame,
        columns=[("group", Column("group", formats.setting)), *across, "n"],
    )
    figure = LineFigure(
        name="kl_over_rank",
        caption="KL of the least-squares approximation of log P over its rank, one line per group: "
        "means over seeds, with least and greatest. Dotted lines: the bounds of the KL ranks.",
        marks=_cost_marks(curves),
        x="Rank of the approximation",
        y={"": "KL (nats)"},
        logarithmic_y={""},
        ticks=[rank for rank in curves["rank"] if rank],
    )
    return Section(
        kind="kl-curves",
        heading="What a lower rank would cost at most",
        tables=(wide, Table(frame=curves, file="kl_over_rank.csv")),
        drawings=(figure,),
        method=prose("method_kl_curves.txt"),
        wide=False,
    )


def _cost_marks(curves: pd.DataFrame) -> pd.DataFrame:
    # A logarithmic axis cannot show rank 0 (a uniform guess) or costs that rounding makes negative.
    drawable = curves[(curves["rank"] > 0) & (curves["least"] > 0)]
    texts = [
        formats.described(
            f"{point.group}, rank {point.rank}",
            {f"kl_at_rank_{point.rank}": point.mean},
            trials=point.n,
        )
        for point in rows(drawable)
    ]
    names = {"rank": "x", "mean": "y", "least": "low", "greatest": "high"}
    bounds = pd.DataFrame({"kind": "bound", "y": BOUNDS_NATS})
    return pd.concat([drawable.rename(columns=names).assign(kind="joined", text=texts), bounds])
