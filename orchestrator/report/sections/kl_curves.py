"""The curve of KL over the rank of an approximation, a line a group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import partial

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from orchestrator.analysis import Line
from orchestrator.report import formats
from orchestrator.report.figures import (
    PALE,
    Drawing,
    group_colour,
    group_line,
    make_logarithmic,
    new_figure,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, csv_lines, text_table

BOUNDS_NATS = (0.1, 0.01, 0.001)
"""Those of the KL ranks."""


def kl_curve_section(lines: Mapping[str, Line]) -> Section:
    """The figure and the table of a LossByRank request."""
    ranks = sorted({rank for line in lines.values() for rank in line})
    rows = [
        {"group": Cell(group, kind="name")}
        | {
            f"{rank:g}": Cell(formats.number(line[rank].mean, digits=3) if rank in line else "")
            for rank in ranks
        }
        | {"trials": Cell(str(line[0].n))}
        for group, line in lines.items()
    ]
    records = [
        {"group": group, "rank": f"{rank:g}", **asdict(point)}
        for group, line in lines.items()
        for rank, point in line.items()
    ]
    return Section(
        kind="kl-curves",
        heading="What a lower rank would cost at most",
        tables=(
            text_table(
                "KL in nats of least-squares approximations of rank r (across), means over seeds",
                rows,
            ),
        ),
        drawings=(
            Drawing(
                name="kl_over_rank",
                caption="KL of the least-squares approximation of log P over its rank, a line a group, means over "
                "seeds, with their least and greatest. Dotted: the bounds of the KL ranks.",
                draw=partial(_draw, lines),
            ),
        ),
        method=prose("method_kl_curves.txt"),
        files={"kl_over_rank.csv": csv_lines(records)},
        wide=False,
    )


def _draw(lines: Mapping[str, Line]) -> Figure:
    figure, axes = new_figure(left_in=0.95, right_in=0.25, top_in=0.15)
    for place, (group, line) in enumerate(lines.items()):
        # Rank 0, a uniform guess, has no place on a logarithmic axis, nor has a cost below
        # rounding.
        points = {rank: point for rank, point in line.items() if rank and point.least > 0}
        colour, means = group_colour(place), [point.mean for point in points.values()]
        axes.plot(list(points), means, group_line(place), color=colour, linewidth=1.2, label=group)
        axes.vlines(
            list(points), [p.least for p in points.values()], [p.greatest for p in points.values()],
            colors=colour, linewidth=1,
        )  # fmt: skip
        names = [
            formats.described(
                f"{group}, rank {rank:g}", {f"kl_at_rank_{rank:g}": point.mean}, trials=point.n
            )
            for rank, point in points.items()
        ]
        name_marks(axes, zip(points, means, strict=True), names)
    for bound in BOUNDS_NATS:
        axes.axhline(bound, color=PALE, linewidth=1, linestyle=":", zorder=0)
    ranks = sorted({rank for line in lines.values() for rank in line if rank})
    if ranks:
        make_logarithmic(axes, "y").set_major_locator(LogLocator())
        make_logarithmic(axes, "x")
        axes.set_xticks(ranks, [f"{rank:g}" for rank in ranks])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("Rank of the approximation")
    axes.set_ylabel("KL (nats)")
    axes.legend(fontsize=7.5)
    return figure
