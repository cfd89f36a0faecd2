"""Metrics against a config value, a line for each value of another: figure, tables, and what they come to in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, NullLocator

from orchestrator.analysis import ClaimChecked, LineNumbers, LinePoint, Reached
from orchestrator.report import formats
from orchestrator.report.figures import Drawing, new_panels
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, text_table
from orchestrator.words import counted, listed, some_of

PANEL_WIDTH_IN, PANEL_HEIGHT_IN = 2.7, 2.4
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
"""Okabe and Ito's, which colour-blind readers can tell apart; the markers differ as well."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
NAMES_SHOWN = 5


def line_section(numbers: LineNumbers) -> Section:
    """The figure, tables and findings of a Lines request."""
    request = numbers.request
    heading = request.title or f"Over the {formats.title(request.x)}"
    if not any(numbers.lines.values()):
        return Section(kind="lines", heading=heading, findings=("No trial has a result to draw yet.",))
    x, by = formats.title(request.x), formats.title(request.by)
    tables = [_table(numbers, metric) for metric in request.metrics]
    files = {"lines.csv": list(_csv(numbers))}
    if numbers.claims:
        tables.append(_claims_table(numbers))
        files["claims.csv"] = list(_claims_csv(numbers))
    metrics = " and ".join(formats.title(metric) for metric in request.metrics)
    panels = f", a column of panels for each {formats.title(request.panel)}" if request.panel else ""
    caption = (
        f"{formats.capital(metrics)} against {x}, a line for each {by}{panels}; "
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
    for reached in numbers.reached:
        yield _reach_sentence(reached, numbers)
    for _, checked in groupby(numbers.claims, key=lambda panel: panel.claim):
        yield _claim_sentence(list(checked), numbers)
    if numbers.limited:
        yield (
            f"{counted(len(numbers.limited), 'fit')} stopped at the limit of iterations before the rule of convergence "
            f"was met: {some_of(numbers.limited, NAMES_SHOWN)}."
        )


def _reach_sentence(reached: Reached, numbers: LineNumbers) -> str:
    reach, x_title = reached.reach, formats.title(numbers.request.x)
    far = max(
        (x for (_, metric, _), line in numbers.lines.items() if metric == reach.metric for x in line), default=0.0
    )
    parts = [
        f"first at {x_title} {place:g} by {listed([formats.setting(by) for by, x in reached.x.items() if x == place])}"
        for place in sorted({x for x in reached.x.values() if x is not None})
    ]
    never = [formats.setting(by) for by, x in reached.x.items() if x is None]
    if never:
        parts.append(f"nowhere up to {far:g} by {listed(never)}")
    metric = formats.capital(formats.title(reach.metric))
    bound = "at most" if reach.at_most else "at least"
    where = _where(reached.panel, numbers)
    return f"{metric} of {bound} {reach.value:g}{where}, in the mean, is reached {'; '.join(parts)}."


def _claim_sentence(checked: Sequence[ClaimChecked], numbers: LineNumbers) -> str:
    claim = checked[0].claim
    places, holds, apart, against = _counts(checked, "places", "holds", "apart", "apart_against")
    panels = ", ".join(formats.setting(panel.panel) for panel in checked) if numbers.request.panel else ""
    where = f" at {formats.title(numbers.request.panel)} {panels}" if numbers.request.panel else ""
    up_to = "" if claim.x_up_to is None else f" and {formats.title(numbers.request.x)} up to {claim.x_up_to:g}"
    return (
        f"Claimed: \N{LEFT DOUBLE QUOTATION MARK}{claim.text}\N{RIGHT DOUBLE QUOTATION MARK}; {_verdict(checked)}: in "
        f"{formats.title(claim.metric)}{where}{up_to}, {claim.better} is better than {claim.than} in the mean at "
        f"{holds} of {counted(places, 'place')}; every one of its trials is better at {apart}, and worse at {against}."
    )


def _counts(checked: Sequence[ClaimChecked], *names: str) -> Iterator[int]:
    """How many places each of the fields has, over all panels."""
    return (sum(len(getattr(panel, name)) for panel in checked) for name in names)


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
    return sorted({x for line in numbers.lines.values() for x in line})


def _table(numbers: LineNumbers, metric: str) -> TextTable:
    request, places = numbers.request, _places(numbers)
    rows = []
    for (panel, its_metric, by), line in numbers.lines.items():
        if its_metric == metric:
            name = Cell(formats.setting(by), kind="name")
            rows.append((*_panel_cell(panel, numbers), name, *(_cell(metric, line.get(x)) for x in places)))
    return text_table(
        f"{formats.capital(formats.title(metric))} over {formats.title(request.x)} (across): mean, and the "
        "least and the greatest of several trials",
        (*_panel_title(numbers), formats.title(request.by), *(f"{x:g}" for x in places)),
        rows,
    )


def _panel_title(numbers: LineNumbers) -> list[str]:
    return [formats.title(numbers.request.panel)] if numbers.request.panel else []


def _panel_cell(panel: Any, numbers: LineNumbers) -> list[Cell]:
    return [Cell(formats.setting(panel), kind="label")] if numbers.request.panel else []


def _cell(metric: str, point: LinePoint | None) -> Cell:
    if point is None:
        return Cell(formats.cell(metric, None))
    mean, least, greatest = (formats.number(value, digits=3) for value in (point.mean, point.least, point.greatest))
    return Cell(f"{mean} [{least}, {greatest}]" if point.n > 1 else mean, number=point.mean)


def _claims_table(numbers: LineNumbers) -> TextTable:
    rows = []
    for checked in numbers.claims:
        claim, places = checked.claim, (checked.places, checked.holds, checked.apart, checked.apart_against)
        lines = (Cell(formats.title(claim.metric)), *(Cell(name, kind="name") for name in (claim.better, claim.than)))
        texts = (Cell(", ".join(f"{x:g}" for x in xs) or "nowhere") for xs in places)
        rows.append((*_panel_cell(checked.panel, numbers), *lines, *texts))
    head = ("metric", "first", "second", "asked at", "better in the mean", "every trial better", "every trial worse")
    over = formats.title(numbers.request.x)
    return text_table(
        f"What was claimed, by {over}: where the first is better than the second",
        (*_panel_title(numbers), *head),
        rows,
    )


def _csv(numbers: LineNumbers) -> Iterator[list[Any]]:
    request = numbers.request
    yield [request.panel or "panel", "metric", request.by, request.x, "n", "mean", "sd", "least", "greatest"]
    for key, line in numbers.lines.items():
        for x, point in line.items():
            yield [*key, x, point.n, point.mean, point.sd, point.least, point.greatest]


def _claims_csv(numbers: LineNumbers) -> Iterator[list[Any]]:
    names = ("holds", "apart", "apart_against")
    yield ["claim", numbers.request.panel or "panel", "metric", "better", "than", "asked", *names]
    for checked in numbers.claims:
        claim = checked.claim
        places = (" ".join(f"{x:g}" for x in getattr(checked, name)) for name in ("places", *names))
        yield [claim.text, checked.panel, claim.metric, claim.better, claim.than, *places]


def _draw(numbers: LineNumbers) -> Figure:
    request, panels = numbers.request, numbers.panels
    width_in, height_in = PANEL_WIDTH_IN * len(panels) + 0.4, PANEL_HEIGHT_IN * len(request.metrics) + 0.5
    figure, grid = new_panels(
        len(request.metrics), len(panels), width_in=width_in, height_in=height_in, sharey="row", sharex=True
    )
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
        line = numbers.lines[panel, metric, group]
        points = line.values()
        means = [point.mean for point in points]
        # Rounding may put the mean of equal values next to them.
        bars = [
            [max(0.0, point.mean - point.least) for point in points],
            [max(0.0, point.greatest - point.mean) for point in points],
        ]
        axes.errorbar(
            list(line), means, yerr=bars, label=formats.setting(group), linewidth=1.2, elinewidth=1,
            color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], markersize=4.5,
        )  # fmt: skip
    if request.logarithmic_x:
        axes.set_xscale("log")
    if metric in request.logarithmic_y and any(line for key, line in numbers.lines.items() if key[1] == metric):
        axes.set_yscale("log")
        # The usual labels are formulas, which these figures leave as they are typed.
        axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_xticks(places, [f"{x:g}" for x in places])
    axes.xaxis.set_minor_locator(NullLocator())
