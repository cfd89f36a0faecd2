"""Significance tests between groups, with what they could and could not have shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.analysis.contrasts import Contrast, ContrastNumbers
from orchestrator.analysis.statistics.samples import SampleSummary
from orchestrator.report import formats
from orchestrator.report.sections.family_csv import csv_lines, ends
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable
from orchestrator.report.verdicts import verdict

METHOD = (
    "Two-sided tests of the difference of two means: Student's (equal variances, as in the paper) and Welch's. Holm's "
    "correction is over all rows of the table. Intervals are 95%: of the difference by Student's t, of Hedges' g, and "
    "bootstrapped (BCa). Detectable: the smallest true difference that Welch's test with these seeds and this spread "
    "finds in four of five repetitions. Both need five values of each. Equal within: the smallest margin at which two "
    "one-sided tests at 0.05 would call the two models equivalent."
)


def contrast_section(numbers: ContrastNumbers) -> Section:
    """The table and the verdicts of a Comparison request."""
    request = numbers.request
    metric = formats.title(request.metric)
    corpora = [name for name in numbers.corpora if any(name in line.published for line in numbers.contrasts)]
    head = (
        "model",
        "against",
        "n",
        "difference [95%]",
        "bootstrap [95%]",
        "Student p",
        "Welch p",
        "Holm p",
        "Hedges' g [95%]",
        "detectable",
        "equal within",
        *(f"published {formats.corpus_title(name)}: p" for name in corpora),
    )
    beside = f", beside {request.source}" if corpora and request.source else ""
    return Section(
        kind="tests",
        heading=f"Is the difference in {metric} more than chance?",
        findings=tuple(
            verdict(line.comparison, line.p_adjusted, names=(line.group, line.baseline), metric=request.metric)
            for line in numbers.contrasts
        ),
        tables=(
            TextTable(
                caption=f"Differences in {metric}, model less baseline (negative: the model is better){beside}",
                head=head,
                body=tuple(tuple(_cells(line, corpora)) for line in numbers.contrasts),
            ),
        ),
        method=METHOD,
        files={"tests.csv": list(csv_lines([_record(line, corpora) for line in numbers.contrasts]))},
    )


def _cells(line: Contrast, corpora: list[str]) -> Iterator[Cell]:
    found = line.comparison
    yield Cell(line.group, kind="name")
    yield Cell(line.baseline, kind="name")
    yield Cell(f"{found.a.n} + {found.b.n}", number=found.a.n + found.b.n)
    yield Cell(formats.bounded(found.student.difference, found.student.interval), kind="short")
    yield Cell(formats.bounded(None, found.bootstrap.interval), kind="short")
    for p_value in (found.student.p_value, found.welch.p_value, line.p_adjusted):
        yield Cell(formats.p_value(p_value), kind="short")
    yield Cell(formats.bounded(found.effect.g, found.effect.interval), kind="short")
    for value in (found.detectable.value, found.smallest_margin.value):
        yield Cell(formats.number(value, digits=2), number=value)
    for corpus in corpora:
        yield Cell(formats.p_value(line.published.get(corpus)), kind="short")


def _record(line: Contrast, corpora: list[str]) -> dict[str, Any]:
    found = line.comparison
    return {
        "group": line.group,
        "baseline": line.baseline,
        **_sample("group", found.a),
        **_sample("baseline", found.b),
        "difference": found.student.difference,
        **ends("difference", found.student.interval),
        **ends("difference_welch", found.welch.interval),
        **ends("bootstrap", found.bootstrap.interval),
        "student_t": found.student.t,
        "student_df": found.student.df,
        "student_p": found.student.p_value,
        "welch_t": found.welch.t,
        "welch_df": found.welch.df,
        "welch_p": found.welch.p_value,
        "holm_p": line.p_adjusted,
        "hedges_g": found.effect.g,
        **ends("hedges_g", found.effect.interval),
        "detectable_difference": found.detectable.value,
        "equal_within": found.smallest_margin.value,
        "missing": found.student.missing,
        **{f"published_p_{name}": line.published.get(name) for name in corpora},
    }


def _sample(name: str, sample: SampleSummary) -> dict[str, Any]:
    return {f"n_{name}": sample.n, f"mean_{name}": sample.mean, f"sd_{name}": sample.sd}
