"""Metrics against a config value, a line for each value of another: figure, tables, and what they come to in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from orchestrator.analysis.lines import ClaimChecked, LineNumbers, LinePoint, Reached
from orchestrator.report import formats
from orchestrator.report.figures import Drawing
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable
from orchestrator.words import counted, listed

PANEL_WIDTH_IN, PANEL_HEIGHT_IN = 2.7, 2.4
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's, which colour-blind readers can tell apart; the markers differ as well."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
NAMES_SHOWN = 5


def line_section(numbers: LineNumbers) -> Section:
    """The figure, tables and findings of a Lines request."""
    request = numbers.request
    heading = request.title or f"Over the {formats.title(request.x)}"
    if not any(line.points for line in numbers.lines):
        return Section(kind="lines", heading=heading, findings=("No trial has a result to draw yet.",))
    x, by = formats.title(request.x), formats.title(request.by)
    tables = [_table(numbers, metric) for metric in request.metrics]
    files = {"lines.csv": list(_csv(numbers))}
    if numbers.claims:
        tables.append(_claims_table(numbers))
        files["claims.csv"] = list(_claims_csv(numbers))
    shown = " and ".join(formats.title(metric) for metric in request.metrics)
    panels = f", a column of panels for each {formats.title(request.panel)}" if request.panel else ""
    caption = (
        f"{formats.capital(shown)} against {x}, a line for each {by}{panels}; "
        "means over the trials, bars from the least to the greatest."
    )
    drawing = Drawing(name=f"lines_over_{x.replace(' ', '_')}", caption=caption, draw=lambda: _draw(numbers))
    return Section(
        kind="lines",
        heading=heading,
        findings=tuple(_findings(numbers)),
        tables=tuple(tables),
        method=request.note,
        files=files,
        drawings=(drawing,),
    )


def _findings(numbers: LineNumbers) -> Iterator[str]:
    for _, found in groupby(numbers.reached, key=lambda each: (each.reach, each.panel)):
        yield _reach_sentence(list(found), numbers)
    for _, checked in groupby(numbers.claims, key=lambda each: each.claim):
        yield _claim_sentence(list(checked), numbers)
    if numbers.limited:
        some = ", ".join(numbers.limited[:NAMES_SHOWN])
        more = f" and {len(numbers.limited) - NAMES_SHOWN} more" if len(numbers.limited) > NAMES_SHOWN else ""
        yield (
            f"{counted(len(numbers.limited), 'fit')} stopped at the limit of iterations before the rule of convergence "
            f"was met: {some}{more}."
        )


def _reach_sentence(found: Sequence[Reached], numbers: LineNumbers) -> str:
    reach, x_title = found[0].reach, formats.title(numbers.request.x)
    far = max((p.x for line in numbers.lines if line.metric == reach.metric for p in line.points), default=0.0)
    ordered = sorted((each for each in found if each.x is not None), key=lambda each: each.x or 0.0)
    parts = [
        f"first at {x_title} {x:g} by {listed([formats.setting(each.by) for each in same])}"
        for x, same in groupby(ordered, key=lambda each: each.x)
    ]
    never = [formats.setting(each.by) for each in found if each.x is None]
    if never:
        parts.append(f"nowhere up to {far:g} by {listed(never)}")
    metric = formats.capital(formats.title(reach.metric))
    bound = "at most" if reach.at_most else "at least"
    where = _where(found[0].panel, numbers)
    return f"{metric} of {bound} {reach.value:g}{where}, in the mean, is reached {'; '.join(parts)}."


def _claim_sentence(checked: Sequence[ClaimChecked], numbers: LineNumbers) -> str:
    claim = checked[0].claim
    places, holds, apart, against = _counts(checked, "places", "holds", "apart", "apart_against")
    panels = ", ".join(formats.setting(each.panel) for each in checked) if numbers.request.panel else ""
    where = f" at {formats.title(numbers.request.panel)} {panels}" if numbers.request.panel else ""
    up_to = "" if claim.x_up_to is None else f" and {formats.title(numbers.request.x)} up to {claim.x_up_to:g}"
    return (
        f"Claimed: \N{LEFT DOUBLE QUOTATION MARK}{claim.text}\N{RIGHT DOUBLE QUOTATION MARK}; {_verdict(checked)}: in "
        f"{formats.title(claim.metric)}{where}{up_to}, {claim.better} is better than {claim.than} in the mean at "
        f"{holds} of {counted(places, 'place')}; every one of its trials is better at {apart}, and worse at {against}."
    )


def _counts(checked: Sequence[ClaimChecked], *names: str) -> Iterator[int]:
    """How many places each of the fields has, over all panels."""
    return (sum(len(getattr(each, name)) for each in checked) for name in names)


def _verdict(checked: Sequence[ClaimChecked]) -> str:
    """What the places together allow to say: a mean alone decides nothing, and a single trial has no spread."""
    places, holds, apart, against, single = _counts(checked, "places", "holds", "apart", "apart_against", "single")
    if single == places:
        return "ours do not decide it, with one trial a place"
    if apart == places:
        return "ours agree, every trial of them"
    if holds == places:
        return "ours agree in the mean"
    if against == places:
        return "ours say the contrary, every trial of them"
    return "ours agree in part" if holds else "ours do not agree in the mean"


def _where(panel: Any, numbers: LineNumbers) -> str:
    request = numbers.request
    return f" at {formats.title(request.panel)} = {formats.setting(panel)}" if request.panel else ""


def _places(numbers: LineNumbers) -> list[float]:
    return sorted({point.x for line in numbers.lines for point in line.points})


def _table(numbers: LineNumbers, metric: str) -> TextTable:
    request, places = numbers.request, _places(numbers)
    named = (formats.title(request.panel),) if request.panel else ()
    body = []
    for line in numbers.lines:
        if line.metric != metric:
            continue
        points = {point.x: point for point in line.points}
        panel = (Cell(formats.setting(line.panel), kind="label"),) if request.panel else ()
        cells = (_cell(metric, points.get(x)) for x in places)
        body.append((*panel, Cell(formats.setting(line.by), kind="name"), *cells))
    return TextTable(
        caption=f"{formats.capital(formats.title(metric))} over {formats.title(request.x)} (across): mean, and the "
        "least and the greatest of several trials",
        head=(*named, formats.title(request.by), *(f"{x:g}" for x in places)),
        body=tuple(body),
    )


def _cell(metric: str, point: LinePoint | None) -> Cell:
    if point is None:
        return Cell(formats.cell(metric, None))
    mean, least, greatest = (formats.number(value, digits=3) for value in (point.mean, point.least, point.greatest))
    return Cell(f"{mean} [{least}, {greatest}]" if point.sample.n > 1 else mean, number=point.mean)


def _claims_table(numbers: LineNumbers) -> TextTable:
    request = numbers.request
    body = []
    for each in numbers.claims:
        panel = (Cell(formats.setting(each.panel), kind="label"),) if request.panel else ()
        places = (each.places, each.holds, each.apart, each.apart_against)
        texts = (", ".join(f"{x:g}" for x in xs) or "nowhere" for xs in places)
        metric = formats.title(each.claim.metric)
        who = (Cell(metric), *(Cell(name, kind="name") for name in (each.claim.better, each.claim.than)))
        body.append((*panel, *who, *(Cell(text) for text in texts)))
    return TextTable(
        caption=f"What was claimed, by {formats.title(request.x)}: where the first is better than the second",
        head=(
            *((formats.title(request.panel),) if request.panel else ()),
            "metric",
            "first",
            "second",
            "asked at",
            "better in the mean",
            "every trial better",
            "every trial worse",
        ),
        body=tuple(body),
    )


def _csv(numbers: LineNumbers) -> Iterator[list[Any]]:
    request = numbers.request
    yield [request.panel or "panel", "metric", request.by, request.x, "n", "mean", "sd", "least", "greatest"]
    for line in numbers.lines:
        for point in line.points:
            sample = point.sample
            spread = [sample.n, sample.mean, sample.sd, point.least, point.greatest]
            yield [line.panel, line.metric, line.by, point.x, *spread]


def _claims_csv(numbers: LineNumbers) -> Iterator[list[Any]]:
    names = ("holds", "apart", "apart_against")
    yield ["claim", numbers.request.panel or "panel", "metric", "better", "than", "asked", *names]
    for each in numbers.claims:
        claim = each.claim
        places = (" ".join(f"{x:g}" for x in getattr(each, name)) for name in ("places", *names))
        yield [claim.text, each.panel, claim.metric, claim.better, claim.than, *places]


def _draw(numbers: LineNumbers) -> Figure:
    request, panels = numbers.request, numbers.panels
    size_in = (PANEL_WIDTH_IN * len(panels) + 0.4, PANEL_HEIGHT_IN * len(request.metrics) + 0.5)
    figure = Figure(figsize=size_in, facecolor="white", layout="constrained")
    grid = figure.subplots(len(request.metrics), len(panels), squeeze=False, sharey="row", sharex=True)
    for i, metric in enumerate(request.metrics):
        for j, panel in enumerate(panels):
            _draw_panel(grid[i][j], numbers, panel, metric)
            if request.panel and i == 0:
                grid[i][j].set_title(f"{formats.title(request.panel)} = {formats.setting(panel)}", fontsize=10)
        grid[i][0].set_ylabel(formats.capital(formats.title(metric)))
    for axes in grid[-1]:
        axes.set_xlabel(formats.title(request.x))
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2 * len(panels), frameon=False, fontsize=9)
    return figure


def _draw_panel(axes: Axes, numbers: LineNumbers, panel: Any, metric: str) -> None:
    request, places = numbers.request, _places(numbers)
    for k, group in enumerate(numbers.groups):
        line = numbers.find(panel, metric, group)
        points = line.points if line is not None else ()
        means = [point.mean for point in points]
        # Rounding may put the mean of equal values next to them.
        bars = [
            [max(0.0, point.mean - point.least) for point in points],
            [max(0.0, point.greatest - point.mean) for point in points],
        ]
        axes.errorbar(
            [point.x for point in points], means, yerr=bars, label=formats.setting(group), linewidth=1.2, elinewidth=1,
            color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], markersize=4.5,
        )  # fmt: skip
    if request.logarithmic_x:
        axes.set_xscale("log")
    if metric in request.logarithmic_y and any(line.points for line in numbers.lines if line.metric == metric):
        axes.set_yscale("log")
        # The usual labels are formulas, which these figures leave as they are typed.
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(places, [f"{x:g}" for x in places])
    axes.xaxis.set_minor_locator(NullLocator())
