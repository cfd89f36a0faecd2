"""Metrics over a setting, one panel each: a row of panels for ours, and one for each corpus' printed values."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from orchestrator.analysis import CurveNumbers, CurvePoint
from orchestrator.report import formats
from orchestrator.report.figures import Drawing, new_panels
from orchestrator.report.sections.section import Section

PANEL_WIDTH_IN, PANEL_HEIGHT_IN = 2.5, 2.2
OURS, PRINTED = ("#1b4f8a", "o", "-"), ("#b35900", "^", "--")
"""Colour, marker and line."""


def curve_section(numbers: CurveNumbers) -> Section:
    """The figure of a Curves request."""
    request = numbers.request
    if not numbers.points:
        return Section(kind="curves", heading="Curves", findings=("No trial has a result to draw yet.",))
    over = formats.title(request.x)
    rows = [("ours", numbers.points)]
    rows += [
        (f"published, {formats.corpus_title(name)}", points) for name, points in numbers.published.items() if points
    ]
    caption = f"{request.caption}; a point a trial."
    if len(rows) > 1:
        caption += " Triangles: the published values, of the paper's models."
    name = f"curves_over_{over.replace(' ', '_')}"
    drawing = Drawing(name=name, caption=caption, draw=lambda: _draw(rows, request.metrics, over))
    return Section(kind="curves", heading=f"Over the {over}", drawings=(drawing,))


def _draw(rows: Sequence[tuple[str, Sequence[CurvePoint]]], metrics: Sequence[str], over: str) -> Figure:
    size_in = {"width_in": PANEL_WIDTH_IN * len(metrics), "height_in": PANEL_HEIGHT_IN * len(rows)}
    figure, panels = new_panels(len(rows), len(metrics), **size_in)
    for i, (whose, points) in enumerate(rows):
        colour, marker, line = PRINTED if i else OURS
        for j, metric in enumerate(metrics):
            values = sorted((point.x, point.values[metric]) for point in points if metric in point.values)
            axes = panels[i][j]
            axes.plot([x for x, _ in values], [y for _, y in values], line, color=colour, marker=marker, markersize=5)
            axes.set_title(f"{formats.capital(formats.title(metric))}, {whose}", fontsize=9)
            axes.set_xlabel(over)
            axes.ticklabel_format(style="plain", useOffset=False)
            if metric == "parameters":
                axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1e6:.3g}M")
            if not values:
                axes.text(0.5, 0.5, "no value", transform=axes.transAxes, ha="center", color="0.4")
    return figure
