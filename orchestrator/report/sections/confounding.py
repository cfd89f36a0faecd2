"""Rank correlations of metrics with the loss, as they are and with the trials' settings taken
away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from orchestrator.analysis import SHAPES, SIGNIFICANCE, ConfoundingNumbers, MetricCorrelation, Shape
from orchestrator.report import formats
from orchestrator.report.figures import Drawing
from orchestrator.report.prose import prose
from orchestrator.report.sections.forest import ForestRow, draw_forest
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable, csv_lines, ends, text_table
from orchestrator.words import counted, listed

SHAPE_TITLES: Mapping[Shape, str] = {
    "none": "as it is",
    "lines": "without lines",
    "levels": "without levels",
    "pairs": "without pairs",
    "triples": "without triples",
}
LONG_TITLES: Mapping[Shape, str] = {
    "none": "as they are",
    "lines": "with a straight line in each setting taken away",
    "levels": "with a level for each value of each setting taken away",
    "pairs": "with a level for each pair of values of two settings taken away",
    "triples": "with a level for each triple of values of three settings taken away",
}
NEARLY_ALL = 0.9
"""Of the variance of y."""
RHO = "\N{GREEK SMALL LETTER RHO}"


def confounding_section(numbers: ConfoundingNumbers) -> Section:
    """The figure, the tables and the findings of a PartialCorrelations request."""
    request = numbers.request
    y, settings = (
        formats.title(request.y),
        listed([formats.title(name) for name in numbers.settings] or ["no setting"]),
    )
    shown = [
        line
        for line in numbers.lines
        if any(statistic.value is not None for statistic in line.rho.values())
    ]
    drawing = Drawing(
        name=f"correlations_with_{request.y}",
        caption=f"Spearman's {RHO} of each metric with {y} over {counted(numbers.trials, 'trial')}, 95% intervals, "
        f"as it is and with {settings} taken away.",
        draw=lambda: draw_forest({"": _rows(shown)}, label=f"{RHO} with {y}", null=0.0),
    )
    return Section(
        kind="confounding",
        heading=request.title or f"Do ranks go with {y} once the settings are taken away?",
        findings=tuple(_findings(numbers)),
        cautions=tuple(_cautions(numbers)),
        tables=(_table(numbers), _share_table(numbers)),
        remarks=(request.claim,) if request.claim else (),
        method=prose("method_confounding.txt", y=y, settings=settings),
        files={
            "confounding.csv": csv_lines(
                [record for line in numbers.lines for record in _records(line, numbers)]
            ),
            "shares_of_settings.csv": csv_lines(list(_share_records(numbers))),
        },
        drawings=(drawing,) if shown else (),
    )


def _rows(lines: Sequence[MetricCorrelation]) -> list[ForestRow]:
    return [
        ForestRow(
            name=formats.title(line.metric),
            estimates={SHAPE_TITLES[shape]: line.rho[shape] for shape in SHAPES},
        )
        for line in lines
    ]


def _findings(numbers: ConfoundingNumbers) -> Iterator[str]:
    """The finest way that the trials allow first, then what is so without taking anything away,
    then who changes."""
    finest, y = numbers.finest, formats.title(numbers.request.y)
    yield _sentence(numbers, finest)
    if finest != "none":
        yield _sentence(numbers, "none")
        changed = [line for line in numbers.lines if _by_choice(line)]
        if changed:
            names = listed([formats.title(line.metric) for line in changed])
            yield (
                f"How the settings are taken away decides whether a correlation with {y} is told "
                f"from zero, and with "
                f"which sign, for {names}: the table has all ways beside each other."
            )
    constant = [
        line.rho["none"].missing for line in numbers.lines if line.rho["none"].value is None
    ]
    if constant and finest != "none":
        yield f"Some have no correlation to give: {listed(list(dict.fromkeys(map(_spelled, constant))))}."


def _sentence(numbers: ConfoundingNumbers, shape: Shape) -> str:
    y, lines = formats.title(numbers.request.y), numbers.lines
    apart = [line for line in lines if _told(line, shape)]
    judged = [line for line in lines if line.rho[shape].value is not None]
    where = f"Over {counted(numbers.trials, 'trial')}, {LONG_TITLES[shape]}"
    if not judged:
        return (
            f"{where}, there is no correlation to report: {_spelled(lines[0].rho[shape].missing)}."
        )
    if not apart:
        widest = max(judged, key=lambda line: abs(line.rho[shape].value or 0.0))
        return (
            f"{where}, none of {counted(len(judged), 'metric')} has a correlation with {y} that is "
            f"told from zero (p < "
            f"{SIGNIFICANCE} after Holm's correction); the largest is that of "
            f"{_with_rho(widest, shape)}."
        )
    shown = listed([_with_rho(line, shape) for line in apart])
    return f"{where}, {len(apart)} of {counted(len(judged), 'metric')} go with {y}: {shown}."


def _told(line: MetricCorrelation, shape: Shape) -> int:
    """The sign of a correlation that is told from zero by its adjusted p; else 0."""
    value, p_adjusted = line.rho[shape].value, line.p_adjusted[shape]
    if value is None or p_adjusted is None or p_adjusted >= SIGNIFICANCE:
        return 0
    return 1 if value > 0 else -1


def _by_choice(line: MetricCorrelation) -> bool:
    verdicts = {
        _told(line, shape)
        for shape in SHAPES
        if shape != "none" and line.rho[shape].value is not None
    }
    return len(verdicts) > 1


def _with_rho(line: MetricCorrelation, shape: Shape) -> str:
    return (
        f"{formats.title(line.metric)} {RHO} = {formats.bounded(line.rho[shape])} "
        f"({formats.p_equals(line.p_adjusted[shape])})"
    )


def _spelled(missing: str) -> str:
    """With the metric that it begins with as its title."""
    name, _, rest = missing.partition(" is ")
    return f"{formats.title(name)} is {rest}" if rest and " " not in name else missing


def _cautions(numbers: ConfoundingNumbers) -> Iterator[str]:
    if not numbers.settings:
        yield "No setting varies among these trials, so nothing is taken away."
        return
    left = numbers.y_explained[""]
    if left is not None and left > NEARLY_ALL:
        yield (
            f"The settings account for {formats.percent(left)} of the variance of "
            f"{formats.title(numbers.request.y)}: "
            "what is left of it to go with a rank is little, and partly how several settings work "
            "together."
        )
    few = [SHAPE_TITLES[shape] for shape in SHAPES if numbers.left[shape] < 1]
    if few:
        yield f"The trials are too few for what is called {listed(few)}."
    yield (
        "A correlation that is left is none of cause and effect: what changes a rank at the same "
        "settings, such as the "
        "seed, may change the loss in another way. A correlation that vanishes may have been the "
        "settings', or too "
        "small for so many trials."
    )


def _table(numbers: ConfoundingNumbers) -> TextTable:
    rows = []
    for line in numbers.lines:
        cells: dict[str, object] = {
            "metric": Cell(formats.title(line.metric), kind="name"),
            "n": line.n,
        }
        cells |= {f"{SHAPE_TITLES[shape]} [95%]": _cell(line, shape) for shape in SHAPES}
        rows.append(cells)
    left = ", ".join(f"{SHAPE_TITLES[shape]} {numbers.left[shape]}" for shape in SHAPES)
    told = f"* where p < {SIGNIFICANCE} after Holm's correction"
    caption = f"Spearman's {RHO} with {formats.title(numbers.request.y)}, {told}; degrees of freedom: {left}"
    return text_table(caption, rows)


def _cell(line: MetricCorrelation, shape: Shape) -> Cell:
    statistic = line.rho[shape]
    if statistic.value is None:
        return Cell(formats.DASH, kind="none")
    return Cell(
        f"{formats.bounded(statistic)}{' *' if _told(line, shape) else ''}", statistic.value
    )


def _share_table(numbers: ConfoundingNumbers) -> TextTable:
    """How much of each metric the settings account for."""
    together = f"all, {finest}" if (finest := numbers.finest) in ("pairs", "triples") else "all"
    lines = [
        (numbers.request.y, numbers.y_explained),
        *((line.metric, line.explained) for line in numbers.lines),
    ]
    rows = [
        {
            "metric": Cell(formats.title(metric), kind="name"),
            **{formats.title(name): _share(shares[name]) for name in numbers.settings},
            together: _share(shares[""]),
        }
        for metric, shares in lines
    ]
    return text_table(
        "Share of the variance that the settings account for (adjusted R\N{SUPERSCRIPT TWO})", rows
    )


def _share(share: float | None) -> Cell:
    """Adjusted, a share of nothing can come out below zero."""
    return Cell(formats.percent(None if share is None else max(share, 0.0)), share)


def _records(line: MetricCorrelation, numbers: ConfoundingNumbers) -> Iterator[dict[str, Any]]:
    for shape in SHAPES:
        statistic = line.rho[shape]
        yield {
            "metric": line.metric,
            "y": numbers.request.y,
            "taken_away": shape,
            "n": line.n,
            "df": statistic.df,
            "rho": statistic.value,
            **ends("rho", statistic.interval),
            "p": statistic.p_value,
            "holm_p": line.p_adjusted[shape],
            "missing": statistic.missing,
        }


def _share_records(numbers: ConfoundingNumbers) -> Iterator[dict[str, Any]]:
    lines = [
        (numbers.request.y, numbers.y_explained),
        *((line.metric, line.explained) for line in numbers.lines),
    ]
    for metric, shares in lines:
        for name, share in shares.items():
            yield {"metric": metric, "setting": name or "all", "adjusted_r2": share}
