"""Metrics against a config value: lines by another setting, or points next to published values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import product
from typing import Any

import pandas as pd

from orchestrator.analysis import CurveNumbers, LineNumbers, rows, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, pivot
from orchestrator.report.findings import Finding, describe
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.sections.section import NOTHING, Section
from orchestrator.report.tables import Cell
from orchestrator.words import is_number, listed


def line_section(numbers: LineNumbers) -> Section:
    """Return the section of a Lines request."""
    request = numbers.request
    if numbers.points.empty:
        return NOTHING
    return Section(
        kind="lines",
        heading=request.title or f"Results by {formats.title(request.x)}",
        findings=tuple(_findings(numbers)),
        tables=tuple(_tables(numbers)),
        method=request.note,
        drawings=(_drawing(numbers),),
    )


def _findings(numbers: LineNumbers) -> Iterator[Finding]:
    request = numbers.request
    for index, reach in enumerate(request.reaches):
        of_reach = [line for line in rows(numbers.reached) if line.reach == index]
        for panel in dict.fromkeys(line.panel for line in of_reach):
            reached: dict[tuple[Any, ...], list[Any]] = {}
            lines = [line for line in of_reach if line.panel == panel]
            for line in sorted(lines, key=lambda line: math.inf if line.x is None else line.x):
                reached.setdefault((line.x, line.least, line.greatest), []).append(line.group)
            yield describe(
                "reach",
                **asdict(reach),
                x=request.x,
                panel_name=request.panel,
                panel=panel,
                reached=[
                    {"x": x, "least": least, "greatest": greatest, "groups": groups}
                    for (x, least, greatest), groups in reached.items()
                ],
            )
    for claim, panels in numbers.claims.groupby("claim", sort=False):
        yield _claim(str(claim), list(rows(panels)))
    if numbers.limited:
        yield describe("fits_at_limit", names=numbers.limited)


def _claim(text: str, panels: Sequence[Any]) -> Finding:
    columns = "asked", "holds", "apart", "apart_against", "single"
    points = {name: sum(len(getattr(panel, name).split()) for panel in panels) for name in columns}
    first = {name: getattr(panels[0], name) for name in ("metric", "better", "than")}
    return describe("claim", claim=text, **first, **points)


def _tables(numbers: LineNumbers) -> Iterator[Table]:
    request = numbers.request
    x, panel = formats.title(request.x), request.panel or "panel"
    names = {"panel": panel, "group": request.by, "x": request.x}
    index = ["panel"] * bool(request.panel) + ["group"] * bool(request.by)
    for metric in request.metrics:
        of_metric = numbers.points[numbers.points["metric"] == metric]
        frame, across = pivot(of_metric, index=index, across="x", cell=point_cell)
        settings = [(name, Column(formats.title(names[name]), formats.setting)) for name in index]
        title = formats.capital(formats.with_unit(metric, request.goal))
        yield Table(
            caption=f"{title} for each {x} (in columns): mean [least, greatest] of the trials",
            frame=frame,
            columns=[*settings, *across],
        )
    yield Table(frame=numbers.points, file="lines.csv", names=names)
    if len(numbers.claims):
        yield Table(
            caption=f"Claims: at which {x} one group is better than another",
            frame=numbers.claims,
            columns=[
                "claim",
                ("panel", Column(formats.title(panel), formats.setting)),
                "metric",
                "better",
                "than",
                "asked",
                "holds",
                "apart",
                "apart_against",
            ],
            file="claims.csv",
            names={"panel": panel},
        )


def point_cell(point: Any) -> Cell:
    """Return a point's cell: "57.1", or "57.1 [56.9, 57.4]" for several trials."""
    mean, least, greatest = (
        formats.number(value, digits=3) for value in (point.mean, point.least, point.greatest)
    )
    return Cell(f"{mean} [{least}, {greatest}]" if point.n > 1 else mean, number=point.mean)


def _drawing(numbers: LineNumbers) -> LineFigure:
    request = numbers.request
    x = formats.title(request.x)
    titles = [formats.with_unit(metric, request.goal) for metric in request.metrics]
    lines = f", one line per {formats.title(request.by)}" if request.by else ""
    panels = f", one column of panels per {formats.title(request.panel)}" if request.panel else ""
    caption = (
        f"{formats.capital(listed(titles))} against {x}{lines}{panels}. Points are means "
        "over trials; bars go from the least to the greatest trial."
    )
    if len(numbers.references):
        caption += (
            f" Dashed line: {request.reference}, which has no {x}. Its band goes from the least to "
            "the greatest trial."
        )
    return LineFigure(
        name=f"lines_over_{x.replace(' ', '_')}",
        caption=caption,
        marks=_marks(numbers),
        x=x,
        y=dict(zip(request.metrics, map(formats.capital, titles), strict=True)),
        logarithmic_x=request.logarithmic_x,
        logarithmic_y=request.logarithmic_y,
        ticks=[x for x in numbers.points["x"] if is_number(x)],
    )


def _marks(numbers: LineNumbers) -> pd.DataFrame:
    request = numbers.request
    x, by = formats.title(request.x), formats.title(request.by)
    texts = [
        formats.described(
            f"{by} {formats.setting(point.group)}, {x} {formats.setting(point.x)}".lstrip(" ,"),
            {point.metric: point.mean},
            trials=point.n,
        )
        for point in rows(numbers.points)
    ]
    # Only points at numbers can have tooltips.
    points = numbers.points.assign(kind="joined", text=texts)
    points["text"] = points["text"].where(points["x"].map(is_number), None)
    references = numbers.references.assign(kind="reference", group=request.reference)
    names = {"metric": "row", "mean": "y", "least": "low", "greatest": "high"}
    bounds = tidy(
        {"kind": "bound", "row": reach.metric, "panel": panel, "y": reach.value}
        for reach, panel in product(request.reaches, numbers.panels)
    )
    marks = pd.concat([pd.concat([points, references]).rename(columns=names), bounds])
    if request.panel:
        title = formats.title(request.panel)
        marks["panel"] = [f"{title} = {formats.setting(panel)}" for panel in marks["panel"]]
    return marks


def curve_section(numbers: CurveNumbers) -> Section:
    """Return the section of a Curves request: a row per metric, ours next to published values."""
    request = numbers.request
    if numbers.points.empty:
        return NOTHING
    over = formats.title(request.x)
    several = len(numbers.points) > len(numbers.means)
    points = "means over seeds; pale points are single trials" if several else "one point per trial"
    caption = f"{request.caption}; {points}."
    if not numbers.printed.empty:
        caption += " Triangles: published values of the paper's models."
    marks = tidy(_curve_marks(numbers, several=several))
    figure = LineFigure(
        name=f"curves_over_{over.replace(' ', '_')}",
        caption=caption,
        marks=marks,
        x=over,
        y=dict(zip(marks["row"], marks["label"], strict=True)),
        logarithmic_x=False,
        across=marks["group"].nunique(),
    )
    return Section(
        kind="curves",
        heading=f"Results by {over}",
        tables=(
            Table(
                frame=numbers.means.rename_axis("group").reset_index(),
                file="curves.csv",
                names={"x": request.x},
            ),
        ),
        drawings=(figure,),
    )


def _curve_marks(numbers: CurveNumbers, *, several: bool) -> Iterator[dict[str, Any]]:
    over = formats.title(numbers.request.x)
    published = f"published, {formats.corpus_title(numbers.corpus)}"
    curves = [(numbers.means, "joined", "ours"), (numbers.printed, "printed", published)]
    if several:
        curves.insert(0, (numbers.points, "trial", "ours"))
    for metric, (points, kind, source) in product(numbers.request.metrics, curves):
        values = points[["x", metric]].dropna().sort_values(["x", metric])
        for group, x, value in values.itertuples():
            text = formats.described(str(group), {over: x, metric: value})
            yield {
                "kind": kind,
                "row": f"{metric}, {source}",
                "label": f"{formats.heading(metric)}, {source}",
                "group": source,
                "x": x,
                "y": value,
                "text": None if kind == "trial" else text,
            }
