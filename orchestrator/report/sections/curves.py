"""Metrics against a config value: a point a group, next to the printed values."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pandas as pd

from orchestrator.analysis import CurveNumbers, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Table
from orchestrator.report.figures import Drawing
from orchestrator.report.line_figure import LineFigure, draw_lines
from orchestrator.report.sections.section import Section


def curve_section(numbers: CurveNumbers) -> Section:
    """Return the figure of a Curves request: a row a metric, ours next to the printed values."""
    request = numbers.request
    if numbers.points.empty:
        return Section(
            kind="curves", heading="Curves", findings=("No trial has a result to draw yet.",)
        )
    over = formats.title(request.x)
    several = len(numbers.points) > len(numbers.means)
    points = "means over seeds, pale points are single trials" if several else "a point a trial"
    caption = f"{request.caption}; {points}."
    if not numbers.printed.empty:
        caption += " Triangles: the published values, of the paper's models."
    figure = LineFigure(
        marks=tidy(_marks(numbers, several=several)),
        x=over,
        y={metric: formats.capital(formats.title(metric)) for metric in request.metrics},
        logarithmic_x=False,
        share_y=False,
        panel_in=(2.7, 2.4),
    )
    return Section(
        kind="curves",
        heading=f"Over the {over}",
        tables=(
            Table(
                frame=numbers.means.rename_axis("group").reset_index(),
                file="curves.csv",
                names={"x": request.x},
            ),
        ),
        drawings=(
            Drawing(
                name=f"curves_over_{over.replace(' ', '_')}",
                caption=caption,
                draw=partial(draw_lines, figure),
            ),
        ),
    )


def _marks(numbers: CurveNumbers, *, several: bool) -> Iterator[dict[str, Any]]:
    published = f"published, {formats.corpus_title(numbers.corpus)}"
    for metric in numbers.request.metrics:
        if several:
            yield from _points(numbers.points, metric, "trial", "ours", numbers)
        yield from _points(numbers.means, metric, "joined", "ours", numbers)
        yield from _points(numbers.printed, metric, "printed", published, numbers)


def _points(
    points: pd.DataFrame, metric: str, kind: str, source: str, numbers: CurveNumbers
) -> Iterator[dict[str, Any]]:
    over = formats.title(numbers.request.x)
    values = points[["x", metric]].dropna().sort_values(["x", metric])
    for group, x, value in values.itertuples():
        text = formats.described(str(group), {over: x, metric: value})
        yield {
            "kind": kind,
            "row": metric,
            "panel": source,
            "group": source,
            "x": x,
            "y": value,
            "text": None if kind == "trial" else text,
        }
