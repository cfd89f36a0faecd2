"""Correlation of two metrics over cells, next to published values (Fig. 2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.analysis import (
    BETTER_HALF,
    BETWEEN,
    CELLS,
    PUBLISHED_WINDOW,
    WITHIN,
    CorrelationNumbers,
    rows,
)
from orchestrator.report import formats
from orchestrator.report.columns import COLUMNS, Column, Table
from orchestrator.report.findings import Finding, describe, judge
from orchestrator.report.prose import cautions, prose
from orchestrator.report.sections.correlation_figure import correlation_drawings, over
from orchestrator.report.sections.section import Section
from orchestrator.words import counted, listed


def correlation_section(numbers: CorrelationNumbers) -> Section:
    """Return the section of a Correlation request."""
    request = numbers.request
    return Section(
        kind="correlation",
        heading=f"Correlation of {formats.title(request.x)} and {formats.title(request.y)}",
        findings=(*_findings(numbers), *_comparisons(numbers)),
        cautions=cautions(
            "correlation",
            partials=numbers.partials.to_dict("records"),
            trials=len(numbers.points),
            is_repeated=len(numbers.components) > 0,
            lines={*numbers.lines["over"]} & {CELLS, PUBLISHED_WINDOW, BETTER_HALF},
            better_half=BETTER_HALF,
            published=request.published,
        ),
        tables=tuple(_tables(numbers)),
        method=prose(
            "method_correlation.txt",
            seeds=len(numbers.components) > 0,
            partials=len(numbers.partials) > 0,
            contexts=_contexts(numbers),
            rows=formats.title(numbers.rows) if numbers.rows else "",
            definitions=len(numbers.definitions) > 1,
        ),
        drawings=tuple(correlation_drawings(numbers)),
        wide=False,
    )


LEFT_OUT = (
    "left_out",
    Column(
        "left out",
        cell=lambda row: listed([formats.title(name) for name in row.left_out.split()]),
    ),
)
VARIANCES = "variance_cells", "variance_seed_in_one_cell", "variance_seed_in_all_cells"
RANK = "x", Column("rank", formats.title)


def _contexts(numbers: CorrelationNumbers) -> str:
    contexts = numbers.points.get("rank_rows")
    if contexts is None or contexts.dropna().empty:
        return ""
    return formats.bounds(int(contexts.min()), int(contexts.max()))


def _findings(numbers: CorrelationNumbers) -> Iterator[Finding]:
    lines = {line.over: line for line in rows(numbers.lines)}
    for cells in (CELLS, PUBLISHED_WINDOW, BETTER_HALF):
        if cells in lines:
            yield line_finding("correlation", lines[cells])
    parts = list(rows(numbers.components))
    if parts:
        of_parts = {
            "parts": [vars(part) for part in parts],
            "seeds_least": lines[CELLS].seeds_least,
            "seeds_most": lines[CELLS].seeds_most,
        }
        if all(part.seed_share is not None for part in parts):
            yield describe("seed_shares", **of_parts)
            if all(part.variance_seed_in_all_cells is not None for part in parts):
                yield describe("common_seed_effect", **of_parts)
        between, within = lines[BETWEEN], lines[WITHIN]
        if between.pearson is not None or between.missing:
            yield line_finding("corrected_correlation", between)
        if within.pearson is not None:
            yield line_finding("correlation_within_cells", within)
    x, y = numbers.request.x, numbers.request.y
    if len(numbers.definitions) > 1:
        verdicts = (
            judge(row, "pearson", row.holm_p, metric=y, groups=(row.x, y))
            for row in rows(numbers.definitions)
        )
        yield describe("definitions", verdicts)
    partials = [
        judge(row, "levels", row.levels_p, metric=y, groups=(x, y), settings=row.left_out.split())
        for row in rows(numbers.partials)
        if row.levels_low is not None
    ]
    if partials:
        yield describe("partial_correlations", partials)


def line_finding(template: str, line: Any, **numbers: Any) -> Finding:
    """Return a finding on one correlation."""
    groups = line.x, line.y
    verdict = judge(
        line, "pearson", line.pearson_p, metric=line.y, groups=groups, n=line.n, needs_interval=True
    )
    numbers["window"] = "" if line.window_low is None else over(line)
    return describe(template, [verdict], **vars(line) | numbers)


def _comparisons(numbers: CorrelationNumbers) -> Iterator[Finding]:
    published = numbers.request.published
    for line in rows(numbers.lines):
        # Other windows select other cells than the paper did.
        if line.over in (CELLS, PUBLISHED_WINDOW):
            for corpus in [numbers.corpus] if numbers.corpus in published else published:
                yield comparison(line, corpus)


def comparison(line: Any, corpus: str) -> Finding:
    """Return whether a published value is below, inside or above our interval."""
    published = getattr(line, f"published_{corpus}")
    return line_finding("published_correlation", line, published=published, corpus=corpus)


def _tables(numbers: CorrelationNumbers) -> Iterator[Table]:
    request = numbers.request
    x, y = formats.title(request.x), formats.title(request.y)
    printed = [
        (f"published_{corpus}", Column(f"published {corpus_title}: Pearson r", formats.coefficient))
        for corpus in request.published
        for corpus_title in [formats.corpus_title(corpus)]
    ]
    left_out = f"; left out: {numbers.left_out}" if numbers.left_out else ""
    yield Table(
        caption=f"Correlation of {x} and {y}{left_out}",
        frame=numbers.lines,
        columns=[
            ("over", Column("cells", cell=over)),
            ("n", Column("n")),
            "pearson",
            "pearson_p",
            "spearman",
            *(["independent"] if numbers.rows else []),
            *printed,
        ],
        file="correlations.csv",
    )
    yield Table(frame=numbers.cells, file="cells.csv")
    if len(numbers.components):
        cells = counted(numbers.components["cells"][0], "cell")
        yield Table(
            caption=f"Variance due to the seed, over {len(numbers.points)} trials of {cells}",
            frame=numbers.components,
            columns=("metric", *VARIANCES, "seed_share", "reliability"),
            file="variance_components.csv",
        )
    if len(numbers.definitions) > 1:
        yield Table(
            caption=f"Correlation of each definition of rank with {y}",
            frame=numbers.definitions,
            columns=[RANK, "pearson", "pearson_p", ("holm_p", COLUMNS["holm_p"]), "within"],
            file="definitions.csv",
            names={"holm_p": "p_adjusted"},
        )
    if len(numbers.partials):
        yield Table(
            caption="Correlations over cells after removing the effect of one setting",
            frame=numbers.partials,
            columns=[LEFT_OUT, "levels", "levels_p", "line", "line_p"],
            file="partial_correlations.csv",
        )
