"""Smallest size at which a metric reaches a goal, by group, and its growth with another setting."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import pandas as pd

from orchestrator.analysis import ThresholdNumbers, is_reached, rows, tidy
from orchestrator.report import formats
from orchestrator.report.columns import Column, Table, with_interval
from orchestrator.report.findings import Finding, describe, judge
from orchestrator.report.line_figure import LineFigure
from orchestrator.report.prose import cautions, prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell


def threshold_section(numbers: ThresholdNumbers) -> Section:
    """Return the section of a Threshold request."""
    request = numbers.request
    x, z, goal = formats.title(request.x), request.over_name, _goal(numbers)
    return Section(
        kind="thresholds",
        heading=request.title or f"The least {x} with a {goal}",
        findings=tuple(_findings(numbers)),
        cautions=cautions("thresholds", x=x, z=z, partly=list(_partly_fitted(numbers))),
        tables=tuple(_tables(numbers)),
        claim=request.claim,
        method=prose("method_thresholds.txt", x=x, z=z, goal=goal, baseline=request.baseline),
        drawings=(_drawing(numbers),),
    )


def _goal(numbers: ThresholdNumbers) -> str:
    return f"{formats.title(numbers.request.metric)} of at most {numbers.request.value:g}"


def _findings(numbers: ThresholdNumbers) -> Iterator[Finding]:
    request = numbers.request
    of_request = {
        "x": request.x,
        "over": request.over_name,
        "metric": request.metric,
        "goal": request.value,
        "baseline": request.baseline,
    }
    points = list(rows(numbers.points))
    if reached := list(_reached(numbers)):
        yield describe("least_sizes", **of_request, reached=reached)
    if nowhere := [point for point in points if not is_reached(point.x)]:
        words = [
            f"{formats.named(point.group)} at {request.over_name} = {point.z:g} "
            f"({_words(point.x, point)})"
            for point in nowhere
        ]
        yield describe("not_reached", **of_request, nowhere=words)
    ratios = [
        judge(
            point,
            "ratio",
            point.holm_p,
            metric=request.x,
            groups=(point.group, request.baseline),
            null=1.0,
            at=point.z,
        )
        for point in points
        if point.holm_p is not None
    ]
    if ratios:
        yield describe("size_ratios", ratios, **of_request)
    laws = list(rows(numbers.laws))
    if fitted := [vars(law) for law in laws if law.b is not None]:
        yield describe("exponents", **of_request, laws=fitted)
    without = [law for law in laws if law.b is None]
    for missing in dict.fromkeys(law.missing for law in without):
        groups = [str(law.group) for law in without if law.missing == missing]
        yield describe("no_exponents", **of_request, missing=missing, groups=groups)


def _reached(numbers: ThresholdNumbers) -> Iterator[dict[str, Any]]:
    for group, points in numbers.points.groupby("group", sort=False):
        if reached := [point for point in rows(points) if is_reached(point.x)]:
            yield {
                "group": group,
                "sizes": [_words(point.x, point) for point in reached],
                "at": [f"{point.z:g}" for point in reached],
            }


def _partly_fitted(numbers: ThresholdNumbers) -> Iterator[str]:
    sizes = numbers.points["group"].value_counts()
    for law in rows(numbers.laws):
        if law.b is not None and len(law.fitted.split()) < sizes[law.group]:
            yield str(law.group)


def _trained(point: Any) -> list[float]:
    return [float(size) for size in point.trained.split()]


def _words(value: float, point: Any) -> str:
    trained = _trained(point)
    if value == 0:
        return f"below {trained[0]:g}"
    return f"above {trained[-1]:g}" if value == math.inf else formats.number(value, digits=3)


def _size(point: Any) -> Cell:
    text = _words(point.x, point)
    if point.x_low is not None and point.x_low < point.x_high:
        text += f" [{_words(point.x_low, point)}, {_words(point.x_high, point)}]"
    return Cell(text, point.x if is_reached(point.x) else None)


def _tables(numbers: ThresholdNumbers) -> Iterator[Table]:
    request = numbers.request
    x, z = formats.title(request.x), request.over_name
    names = {"z": z, "group": request.by}
    names |= {f"x{end}": f"{request.x}{end}" for end in ("", "_low", "_high")}
    trained = Column(f"trained {x}s", lambda sizes: sizes.replace(" ", ", "))
    ratio = with_interval(f"times that of {request.baseline}")
    yield Table(
        caption=f"The least {x} with a {_goal(numbers)}",
        frame=numbers.points,
        columns=[
            ("z", Column(z, formats.setting)),
            "group",
            ("trained", trained),
            "trials",
            ("x", Column(f"least {x} [95%]", cell=_size)),
            ("ratio", ratio),
            "p",
            "holm_p",
        ],
        file="thresholds.csv",
        names=names,
    )
    fitted = Column(f"fitted at {z}", lambda fitted: fitted.replace(" ", ", ") or formats.DASH)
    yield Table(
        caption=f"The least {x} as a power law a {z}^b",
        frame=numbers.laws,
        columns=[
            "group",
            ("fitted", fitted),
            "b",
            ("log_a", with_interval("ln a")),
            ("farthest_off", Column("farthest off", lambda off: formats.percent(off and off - 1))),
            ("missing", Column("missing", lambda missing: missing or "nothing")),
        ],
        file="threshold_laws.csv",
        names=names,
    )


def _drawing(numbers: ThresholdNumbers) -> LineFigure:
    x, z = formats.title(numbers.request.x), numbers.request.over_name
    points = (_mark(point, x=x, z=z) for point in rows(numbers.points))
    curves = [
        {
            "kind": "curve",
            "group": law.group,
            "x": float(fitted),
            "y": math.exp(law.log_a) * float(fitted) ** law.b,
        }
        for law in rows(numbers.laws)
        if law.b is not None
        for fitted in law.fitted.split()
    ]
    return LineFigure(
        name=re.sub(r"\W+", "_", f"least {x} over {z}"),
        caption=f"The least {x} with a {_goal(numbers)} against {z}, with 95% intervals. Lines are "
        f"the laws a {z}^b. Hollow marks: less than the least trained {x} is enough, or more than "
        "the largest is needed.",
        marks=pd.concat([tidy(points), tidy(curves)]),
        x=z,
        y={"": f"least {x}"},
        logarithmic_y={""},
        ticks=list(numbers.points["z"]),
        dodge=True,
    )


def _mark(point: Any, *, x: str, z: str) -> dict[str, Any]:
    group, trained = formats.setting(point.group), _trained(point)
    low, high = (point.x, point.x) if point.x_low is None else (point.x_low, point.x_high)
    # A size outside the trained range is drawn at the end of the range.
    y, low, high = (min(max(value, trained[0]), trained[-1]) for value in (point.x, low, high))
    return {
        "kind": "mean",
        "group": group,
        "x": point.z,
        "y": y,
        "low": low,
        "high": high,
        "text": f"{group}, {z} = {point.z:g}\n{x} {_size(point).text}",
        "hollow": not is_reached(point.x),
    }
