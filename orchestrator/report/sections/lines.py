"""Metrics against a config value: a line for each value of another, or a point a trial beside the
printed values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator

from orchestrator.analysis import ClaimChecked, CurveNumbers, LineNumbers, LinePoint, Reached
from orchestrator.report import formats
from orchestrator.report.figures import (
    GROUP_MARKERS,
    OURS,
    PALE,
    PRINTED,
    Drawing,
    group_colour,
    make_logarithmic,
    new_panels,
)
from orchestrator.report.hover import name_marks
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, record_table, text_table
from orchestrator.words import counted, listed, some_of

PANEL_WIDTH_IN, PANEL_HEIGHT_IN = 2.7, 2.4
NAMES_SHOWN = 5


def line_section(numbers: LineNumbers) -> Section:
    """The figure, tables and findings of a Lines request."""
    request = numbers.request
    heading = request.title or f"Over the {formats.title(request.x)}"
    if not any(numbers.lines.values()):
        return Section(
            kind="lines", heading=heading, findings=("No trial has a result to draw yet.",)
        )
    x, by, panel = formats.title(request.x), formats.title(request.by), request.panel or "panel"
    tables = [_table(numbers, metric) for metric in request.metrics]
    files = {"lines.csv": list(_csv(numbers))}
    if numbers.claims:
        claims = [_claim_record(checked, numbers) for checked in numbers.claims]
        shown = [{**claim, panel: formats.setting(claim[panel])} for claim in claims]
        tables.append(
            record_table(f"What was claimed: at which {x} the one is better than the other", shown)
        )
        files["claims.csv"] = csv_lines(claims)
    metrics = " and ".join(formats.title(metric) for metric in request.metrics)
    panels = (
        f", a column of panels for each {formats.title(request.panel)}" if request.panel else ""
    )
    caption = (
        f"{formats.capital(metrics)} against {x}, a line for each {by}{panels}; "
        "means over the trials, bars from the least to the greatest."
    )
    if numbers.references:
        caption += f" Dashed: {request.reference}, which has no {x}; its band goes from the least to the greatest, too."
    drawing = Drawing(
        name=f"lines_over_{x.replace(' ', '_')}", caption=caption, draw=lambda: _draw(numbers)
    )
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
        if reached.x:
            yield _reach_sentence(reached, numbers)
    for _, checked in groupby(numbers.claims, key=lambda panel: panel.claim):
        yield _claim_sentence(list(checked))
    if numbers.limited:
        yield (
            f"{counted(len(numbers.limited), 'fit')} stopped at the limit of iterations before the "
            f"rule of convergence "
            f"was met: {some_of(numbers.limited, NAMES_SHOWN)}."
        )


def _reach_sentence(reached: Reached, numbers: LineNumbers) -> str:
    reach, x_title = reached.reach, formats.title(numbers.request.x)
    places: dict[str, list[str]] = {}
    for by, place in sorted(
        reached.x.items(), key=lambda item: math.inf if item[1] is None else item[1]
    ):
        line = numbers.lines[reached.panel, reach.metric, by]
        if place is None:
            words = f"nowhere up to {max(line):g}"
        elif place == min(line):
            words = f"already at {x_title} {place:g}, the least tried,"
        else:
            words = f"first at {x_title} {place:g}"
        places.setdefault(words, []).append(formats.setting(by))
    parts = [f"{words} by {listed(names)}" for words, names in places.items()]
    metric = formats.capital(formats.title(reach.metric))
    bound = "at most" if reach.at_most else "at least"
    panel = numbers.request.panel
    where = f" at {formats.title(panel)} = {formats.setting(reached.panel)}" if panel else ""
    return (
        f"{metric} of {bound} {reach.value:g}{where}, in the mean, is reached {'; '.join(parts)}."
    )


def _claim_sentence(checked: Sequence[ClaimChecked]) -> str:
    """What the places of all panels together allow to say; the table has them one by one."""
    claim = checked[0].claim
    places, holds, apart, against, single = (
        sum(len(getattr(panel, name)) for panel in checked)
        for name in ("places", "holds", "apart", "apart_against", "single")
    )
    # A mean alone decides nothing, and a single trial has no spread.
    verdicts = {
        "ours do not decide it, with one trial a place": single == places,
        "ours agree, every trial of them": apart == places,
        "ours agree in the mean": holds == places,
        "ours say the contrary, every trial of them": against == places,
        "ours agree in part": holds > 0,
        "ours do not agree in the mean": True,
    }
    verdict = next(words for words, applies in verdicts.items() if applies)
    return (
        f"Claimed: \N{LEFT DOUBLE QUOTATION MARK}{claim.text}\N{RIGHT DOUBLE QUOTATION MARK}; "
        f"{verdict}: by "
        f"{formats.title(claim.metric)}, {claim.better} is better than {claim.than} in the mean at "
        f"{holds} of "
        f"{counted(places, 'place')}; every one of its trials is better at {apart}, and worse at "
        f"{against}."
    )


def _places(numbers: LineNumbers, panels: Sequence[Any]) -> list[float]:
    return sorted(
        {x for (panel, _, _), line in numbers.lines.items() if panel in panels for x in line}
    )


def _table(numbers: LineNumbers, metric: str) -> TextTable:
    request, places = numbers.request, _places(numbers, numbers.panels)
    rows = []
    for (panel, its_metric, by), line in numbers.lines.items():
        if its_metric == metric:
            name = {formats.title(request.by): Cell(formats.setting(by), kind="name")}
            values = {f"{x:g}": _cell(metric, line.get(x)) for x in places}
            label = (
                {formats.title(request.panel): Cell(formats.setting(panel), kind="label")}
                if request.panel
                else {}
            )
            rows.append(label | name | values)
    return text_table(
        f"{formats.capital(formats.title(metric))} over {formats.title(request.x)} (across): mean, "
        f"and the "
        "least and the greatest of several trials",
        rows,
    )


def _cell(metric: str, point: LinePoint | None) -> Cell:
    if point is None:
        return Cell(formats.cell(metric, None))
    mean, least, greatest = (
        formats.number(value, digits=3) for value in (point.mean, point.least, point.greatest)
    )
    return Cell(f"{mean} [{least}, {greatest}]" if point.n > 1 else mean, number=point.mean)


def _claim_record(checked: ClaimChecked, numbers: LineNumbers) -> dict[str, Any]:
    claim = checked.claim
    places = {"asked": checked.places, "holds": checked.holds}
    places |= {"apart": checked.apart, "apart_against": checked.apart_against}
    return {
        "claim": claim.text,
        numbers.request.panel or "panel": checked.panel,
        "metric": claim.metric,
        "better": claim.better,
        "than": claim.than,
        **{name: " ".join(f"{x:g}" for x in xs) for name, xs in places.items()},
    }


def _csv(numbers: LineNumbers) -> Iterator[list[Any]]:
    request = numbers.request
    yield [
        request.panel or "panel",
        "metric",
        request.by,
        request.x,
        "n",
        "mean",
        "sd",
        "least",
        "greatest",
    ]
    for key, line in numbers.lines.items():
        for x, point in line.items():
            yield [*key, x, point.n, point.mean, point.sd, point.least, point.greatest]


def _draw(numbers: LineNumbers) -> Figure:
    request, panels = numbers.request, numbers.panels
    width_in, height_in = (
        PANEL_WIDTH_IN * len(panels) + 0.4,
        PANEL_HEIGHT_IN * len(request.metrics) + 0.5,
    )
    figure, grid = new_panels(
        len(request.metrics),
        len(panels),
        width_in=width_in,
        height_in=height_in,
        sharey="row",
        sharex="col",
    )
    for i, metric in enumerate(request.metrics):
        for j, panel in enumerate(panels):
            _draw_panel(grid[i][j], numbers, panel, metric)
            if request.panel and i == 0:
                grid[i][j].set_title(
                    f"{formats.title(request.panel)} = {formats.setting(panel)}", fontsize=10
                )
        grid[i][0].set_ylabel(formats.capital(formats.title(metric)))
    for axes in grid[-1]:
        axes.set_xlabel(formats.title(request.x))
    handles, labels = grid[0][0].get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside upper center",
        ncols=2 * len(panels),
        frameon=False,
        fontsize=9,
    )
    return figure


def _draw_panel(axes: Axes, numbers: LineNumbers, panel: Any, metric: str) -> None:
    request, places = numbers.request, _places(numbers, [panel])
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
            color=group_colour(k), marker=GROUP_MARKERS[k % len(GROUP_MARKERS)], markersize=4.5,
        )  # fmt: skip
        place = f"{formats.title(request.by)} {formats.setting(group)}, {formats.title(request.x)}"
        names = [
            formats.described(f"{place} {x:g}", {metric: point.mean}, trials=point.n)
            for x, point in line.items()
        ]
        name_marks(axes, zip(line, means, strict=True), names)
    if reference := numbers.references.get((panel, metric)):
        axes.axhline(
            reference.mean, color=PRINTED[0], linewidth=1.2, linestyle="--", label=request.reference
        )
        axes.axhspan(
            reference.least, reference.greatest, color=PALE, alpha=0.4, linewidth=0, zorder=0
        )
    for reach in request.reaches:
        if reach.metric == metric:
            axes.axhline(reach.value, color=PALE, linewidth=1, linestyle=":", zorder=0)
    if request.logarithmic_x:
        make_logarithmic(axes, "x")
    if metric in request.logarithmic_y and any(
        line for key, line in numbers.lines.items() if key[1] == metric
    ):
        make_logarithmic(axes, "y").set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axes.set_xticks(places, [f"{x:g}" for x in places])
    axes.xaxis.set_minor_locator(NullLocator())


def curve_section(numbers: CurveNumbers) -> Section:
    """The figure of a Curves request: a panel a metric, in a row for ours and one for the printed
    values."""
    request = numbers.request
    if numbers.points.empty:
        return Section(
            kind="curves", heading="Curves", findings=("No trial has a result to draw yet.",)
        )
    over = formats.title(request.x)
    rows = {"ours": numbers.means}
    several = len(numbers.points) > len(numbers.means)
    points = "means over seeds, pale points are single trials" if several else "a point a trial"
    caption = f"{request.caption}; {points}."
    if not numbers.printed.empty:
        rows[f"published, {formats.corpus_title(numbers.corpus)}"] = numbers.printed
        caption += " Triangles: the published values, of the paper's models."
    name = f"curves_over_{over.replace(' ', '_')}"
    pale = numbers.points if several else numbers.points.iloc[:0]
    drawing = Drawing(
        name=name, caption=caption, draw=lambda: _draw_curves(rows, pale, request.metrics, over)
    )
    means = numbers.means.astype(object).where(numbers.means.notna(), None)
    lines = [[group, *values] for group, *values in means.itertuples()]
    files = {"curves.csv": [["group", request.x, *request.metrics], *lines]}
    return Section(kind="curves", heading=f"Over the {over}", drawings=(drawing,), files=files)


def _draw_curves(
    rows: Mapping[str, pd.DataFrame], pale: pd.DataFrame, metrics: Sequence[str], over: str
) -> Figure:
    """`rows` are ours and the printed ones, `pale` the single trials behind ours."""
    width_in, height_in = 2.5 * len(metrics), 2.4 * len(rows)
    figure, panels = new_panels(len(rows), len(metrics), width_in=width_in, height_in=height_in)
    for i, (whose, points) in enumerate(rows.items()):
        colour, marker, line = PRINTED if i else OURS
        for axes, metric in zip(panels[i], metrics, strict=True):
            if not i:
                axes.scatter(pale["x"], pale[metric], s=9, color=PALE, linewidths=0)
            values = points[["x", metric]].dropna().sort_values(["x", metric])
            names = [
                formats.described(str(row.Index), {over: row.x, metric: row[2]})
                for row in values.itertuples()
            ]
            name_marks(axes, values.to_numpy(), names)
            axes.plot(values["x"], values[metric], line, color=colour, marker=marker, markersize=5)
            axes.set_title(f"{formats.capital(formats.title(metric))},\n{whose}", fontsize=9)
            axes.set_xlabel(over)
            axes.ticklabel_format(style="plain", useOffset=False)
            if metric == "parameters":
                axes.yaxis.set_major_formatter(lambda value, _: f"{value / 1e6:.3g}M")
            if values.empty:
                axes.text(0.5, 0.5, "no value", transform=axes.transAxes, ha="center", color="0.4")
    return figure
