"""Rank correlations of metrics with the loss, before and after removing the settings' effects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from orchestrator.analysis import ALL, SHAPES, SIGNIFICANCE, ConfoundingNumbers, Shape, rows
from orchestrator.report import formats
from orchestrator.report.columns import Table, estimate, pivot
from orchestrator.report.findings import Finding, describe, judge
from orchestrator.report.forest import Forest, estimates
from orchestrator.report.prose import cautions, prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell
from orchestrator.words import counted, listed

SHAPE_TITLES: Mapping[Shape, str] = {
    "none": "nothing removed",
    "lines": "straight lines removed",
    "levels": "effects of values removed",
    "pairs": "effects of pairs removed",
    "triples": "effects of triples removed",
}
RHO = "\N{GREEK SMALL LETTER RHO}"


def confounding_section(numbers: ConfoundingNumbers) -> Section:
    """Return the section of a PartialCorrelations request."""
    request = numbers.request
    y = formats.title(request.y)
    settings = listed([formats.title(name) for name in numbers.settings] or ["no setting"])
    return Section(
        kind="confounding",
        heading=request.title or f"Do ranks correlate with {y} after removing the settings?",
        findings=tuple(_findings(numbers)),
        cautions=cautions(
            "rank_correlations",
            settings=numbers.settings,
            explained=numbers.shares["adjusted_r2"][0],
            y=request.y,
            without_trials=[SHAPE_TITLES[shape] for shape in SHAPES if numbers.left[shape] < 1],
        ),
        tables=tuple(_tables(numbers)),
        claim=request.claim,
        method=prose("method_confounding.txt", y=y, settings=settings),
        drawings=tuple(_drawings(numbers, y, settings)),
    )


def _drawings(numbers: ConfoundingNumbers, y: str, settings: str) -> Iterator[Forest]:
    correlations = numbers.correlations.dropna(subset=["rho"])
    if correlations.empty:
        return
    correlations = correlations.assign(
        metric=correlations["metric"].map(formats.title),
        series=correlations["taken_away"].map(SHAPE_TITLES),
    )
    yield Forest(
        name=f"correlations_with_{numbers.request.y}",
        caption=f"Spearman's {RHO} of each metric with {y} over "
        f"{counted(numbers.trials, 'trial')}, with 95% intervals, before and after removing the "
        f"effects of {settings}.",
        marks=estimates(correlations, "rho", name="metric"),
        labels={"": f"{RHO} with {y}"},
        null=0.0,
    )


def _findings(numbers: ConfoundingNumbers) -> Iterator[Finding]:
    finest, y = numbers.finest, numbers.request.y
    yield _finding(numbers, finest)
    if finest == "none":
        return
    yield _finding(numbers, "none")
    signs: dict[str, set[int]] = {}
    for row in rows(numbers.correlations.dropna(subset=["rho"])):
        if row.taken_away != "none":
            signs.setdefault(row.metric, set()).add(_sign(row))
    if changed := [metric for metric, of_metric in signs.items() if len(of_metric) > 1]:
        yield describe("depends_on_removal", y=y, metrics=changed)
    reasons = dict.fromkeys(_missing(row) for row in _rows(numbers, "none") if row.rho is None)
    if reasons:
        yield describe("constant_metrics", reasons=list(reasons))


def _rows(numbers: ConfoundingNumbers, shape: Shape) -> list[Any]:
    return list(rows(numbers.correlations[numbers.correlations["taken_away"] == shape]))


def _finding(numbers: ConfoundingNumbers, shape: Shape) -> Finding:
    y, of_shape = numbers.request.y, _rows(numbers, shape)
    verdicts = [
        judge(row, "rho", row.holm_p, metric=y, groups=(row.metric, y), n=row.n) for row in of_shape
    ]
    measured = [verdict for verdict in verdicts if verdict.value is not None]
    return describe(
        "rank_correlations",
        verdicts,
        y=y,
        trials=numbers.trials,
        removed=shape,
        missing=_missing(of_shape[0]),
        largest=max(measured, key=lambda one: abs(one.value or 0.0), default=None),
    )


def _sign(row: Any) -> int:
    if row.holm_p is None or row.holm_p >= SIGNIFICANCE:
        return 0
    return 1 if row.rho > 0 else -1


def _missing(row: Any) -> str:
    text: str = row.missing
    return text.replace(row.metric, formats.title(row.metric))


def _tables(numbers: ConfoundingNumbers) -> Iterator[Table]:
    left = ", ".join(f"{SHAPE_TITLES[shape]} {numbers.left[shape]}" for shape in SHAPES)
    mark = f"* if p < {SIGNIFICANCE} after Holm's correction"
    frame, across = pivot(
        numbers.correlations,
        index=["metric", "n"],
        across="taken_away",
        cell=_rho_cell,
        headings={shape: f"{title} [95%]" for shape, title in SHAPE_TITLES.items()},
    )
    yield Table(
        caption=f"Spearman's {RHO} with {formats.title(numbers.request.y)}, {mark}. Remaining "
        f"degrees of freedom: {left}",
        frame=frame,
        columns=["metric", "n", *across],
    )
    yield Table(frame=numbers.correlations, file="confounding.csv")
    together = f"all, {finest}" if (finest := numbers.finest) in ("pairs", "triples") else "all"
    headings = {name: formats.title(name) for name in numbers.settings} | {ALL: together}
    frame, across = pivot(
        numbers.shares,
        index=["metric"],
        across="setting",
        cell=_share_cell,
        headings=headings,
    )
    yield Table(
        caption="Share of the variance that the settings explain (adjusted R\N{SUPERSCRIPT TWO})",
        frame=frame,
        columns=["metric", *across],
    )
    yield Table(frame=numbers.shares, file="shares_of_settings.csv")


def _rho_cell(row: Any) -> Cell:
    if row.rho is None:
        return Cell(formats.DASH, kind="none")
    return Cell(estimate(row, "rho", formats.coefficient) + " *" * bool(_sign(row)), row.rho)


def _share_cell(row: Any) -> Cell:
    share = row.adjusted_r2
    return Cell(formats.percent(None if share is None else max(share, 0.0)), share)
