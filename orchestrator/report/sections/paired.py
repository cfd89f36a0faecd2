"""Significance tests over pairs of one seed, with what they could and could not have shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.analysis.contrasts import PairedContrast, PairedNumbers
from orchestrator.analysis.statistics.samples import FEWEST, SampleSummary
from orchestrator.report import formats
from orchestrator.report.sections.family_csv import csv_lines, ends
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, TextTable
from orchestrator.report.verdicts import paired_verdict

METHOD = (
    "Two-sided paired t-tests of the mean difference, a pair being the two trials of one seed. Holm's correction is "
    "over all rows of the table. Intervals are 95%. Lower at: in how many pairs the model has the lower value. The "
    "effect is the mean of the differences over their own standard deviation, with Hedges' correction; as what both "
    "trials of a pair share drops out of it, it is larger than Hedges' g of two groups and not to be held against "
    "one. Detectable: the smallest true mean difference that so many pairs with this spread find in four of five "
    f"repetitions; it needs {FEWEST} pairs. Equal within: the smallest margin at which two one-sided tests at 0.05 "
    "would call the two models equivalent."
)
HEAD = (
    "model",
    "against",
    "pairs",
    "difference [95%]",
    "lower at",
    "paired p",
    "Holm p",
    "effect of the differences [95%]",
    "detectable",
    "equal within",
)


def paired_section(numbers: PairedNumbers) -> Section:
    """The table and the verdicts of a PairedComparison request."""
    metric = formats.title(numbers.request.metric)
    return Section(
        kind="pairs",
        heading=f"Is the difference in {metric} at the same seed more than chance?",
        findings=tuple(_finding(line, numbers.request.metric) for line in numbers.contrasts),
        tables=(
            TextTable(
                caption=f"Differences in {metric} at a seed, model less baseline (negative: the model is better)",
                head=HEAD,
                body=tuple(tuple(_cells(line)) for line in numbers.contrasts),
            ),
        ),
        method=METHOD,
        files={"pairs.csv": list(csv_lines([_record(line) for line in numbers.contrasts]))},
    )


def _finding(line: PairedContrast, metric: str) -> str:
    text = paired_verdict(line.comparison, line.p_adjusted, names=(line.group, line.baseline), metric=metric)
    if not line.unpaired:
        return text
    one = line.unpaired == 1
    return (
        f"{text} {line.unpaired} {'value has' if one else 'values have'} no partner of the same seed and count nothing."
    )


def _cells(line: PairedContrast) -> Iterator[Cell]:
    found = line.comparison
    yield Cell(line.group, kind="name")
    yield Cell(line.baseline, kind="name")
    yield Cell(str(found.pairs), number=found.pairs)
    yield Cell(formats.bounded(found.test.difference, found.test.interval), kind="short")
    yield Cell(f"{found.lower} of {found.pairs}", kind="short")
    for p_value in (found.test.p_value, line.p_adjusted):
        yield Cell(formats.p_value(p_value), kind="short")
    yield Cell(formats.bounded(found.effect.g, found.effect.interval), kind="short")
    for value in (found.detectable.value, found.smallest_margin.value):
        yield Cell(formats.number(value, digits=2), number=value)


def _record(line: PairedContrast) -> dict[str, Any]:
    found = line.comparison
    return {
        "group": line.group,
        "baseline": line.baseline,
        "pairs": found.pairs,
        "without_partner": line.unpaired,
        **_sample("group", found.a),
        **_sample("baseline", found.b),
        "difference": found.test.difference,
        "sd_difference": found.differences.sd,
        **ends("difference", found.test.interval),
        "pairs_lower": found.lower,
        "pairs_higher": found.higher,
        "paired_t": found.test.t,
        "paired_df": found.test.df,
        "paired_p": found.test.p_value,
        "holm_p": line.p_adjusted,
        "effect_of_differences": found.effect.g,
        **ends("effect_of_differences", found.effect.interval),
        "detectable_difference": found.detectable.value,
        "equal_within": found.smallest_margin.value,
        "missing": found.test.missing or found.detectable.missing,
    }


def _sample(name: str, sample: SampleSummary) -> dict[str, Any]:
    return {f"mean_{name}": sample.mean, f"sd_{name}": sample.sd}
