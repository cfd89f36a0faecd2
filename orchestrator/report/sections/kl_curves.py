"""The curve of KL over the rank of an approximation, a line a group."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from orchestrator.analysis import rows, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, pivot
from orchestrator.report.figures import Drawing
from orchestrator.report.line_figure import LineFigure, draw_lines
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell

BOUNDS_NATS = (0.1, 0.01, 0.001)
"""Bounds of the KL ranks."""


def kl_curve_section(curves: pd.DataFrame) -> Section:
    """Return the figure and the table of a LossByRank request."""
    frame, across = pivot(
        curves,
        index=["group"],
        across="rank",
        cell=lambda point: Cell(formats.number(point.mean, digits=3)),
    )
    trials = dict(zip(curves["group"], curves["n"], strict=True))
    wide = Table(
        caption="KL in nats of least-squares approximations of rank r (across), means over seeds",
        frame=frame.assign(trials=frame["group"].map(trials)),
        shown=[("group", Column("group", formats.setting)), *across, "trials"],
    )
    figure = LineFigure(
        marks=tidy(_marks(curves)),
        x="Rank of the approximation",
        y={"": "KL (nats)"},
        logarithmic_y={""},
        ticks={"x": [rank for rank in curves["rank"] if rank]},
        panel_in=(5.2, 3.8),
    )
    return Section(
        kind="kl-curves",
        heading="What a lower rank would cost at most",
        tables=(wide, Table(frame=curves, file="kl_over_rank.csv")),
        drawings=(
            Drawing(
                name="kl_over_rank",
                caption="KL of the least-squares approximation of log P over its rank, a line a "
                "group, means over seeds, with their least and greatest. Dotted: the bounds of "
                "the KL ranks.",
                draw=partial(draw_lines, figure),
            ),
        ),
        method=prose("method_kl_curves.txt"),
        wide=False,
    )


def _marks(curves: pd.DataFrame) -> Iterator[dict[str, Any]]:
    for point in rows(curves):
        # Rank 0, a uniform guess, has no place on a logarithmic axis, nor has a cost below
        # rounding.
        if not point.rank or point.least <= 0:
            continue
        metrics = {f"kl_at_rank_{point.rank}": point.mean}
        name = f"{point.group}, rank {point.rank}"
        yield {
            "kind": "joined",
            "group": point.group,
            "x": point.rank,
            "y": point.mean,
            "low": point.least,
            "high": point.greatest,
            "text": formats.described(name, metrics, trials=point.n),
        }
    for bound in BOUNDS_NATS:
        yield {"kind": "bound", "y": bound}
