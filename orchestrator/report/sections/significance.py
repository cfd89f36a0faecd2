"""Significance tests between groups, or over pairs of one seed, with what they could and could not have shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from orchestrator.analysis import FEWEST, Contrast, ContrastNumbers, GroupComparison, PairComparison
from orchestrator.report import formats
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, csv_lines, ends, text_table
from orchestrator.report.verdicts import paired_verdict, verdict

HEAD = (
    *("model", "against", "n", "difference [95%]", "bootstrap [95%]", "Student p", "Welch p", "Holm p"),
    *("Hedges' g [95%]", "detectable", "equal within"),
)
PAIRED_HEAD = (
    *("model", "against", "pairs", "difference [95%]", "lower at", "paired p", "Holm p"),
    *("effect of the differences [95%]", "detectable", "equal within"),
)
NO_TEST = ("group", "baseline")
"""The heading of a csv file without a test."""


def contrast_section(numbers: ContrastNumbers[GroupComparison]) -> Section:
    """The table and the verdicts of a Comparison request."""
    metric = formats.title(numbers.metric)
    corpora = list(dict.fromkeys(name for line in numbers.contrasts for name in line.published))
    beside = f", beside {numbers.source}" if corpora and numbers.source else ""
    return Section(
        kind="tests",
        heading=f"Is the difference in {metric} more than chance?",
        findings=tuple(
            verdict(line.comparison, line.p_adjusted, names=(line.group, line.baseline), metric=numbers.metric)
            for line in numbers.contrasts
        ),
        tables=(
            text_table(
                f"Differences in {metric}, model less baseline (negative: the model is better){beside}",
                (*HEAD, *(f"published {formats.corpus_title(name)}: p" for name in corpora)),
                (_cells(line, corpora) for line in numbers.contrasts),
            ),
        ),
        method=prose("method_tests.txt"),
        files={"tests.csv": csv_lines([_record(line, corpora) for line in numbers.contrasts], NO_TEST)},
    )


def paired_section(numbers: ContrastNumbers[PairComparison]) -> Section:
    """The table and the verdicts of a PairedComparison request."""
    metric = formats.title(numbers.metric)
    return Section(
        kind="pairs",
        heading=f"Is the difference in {metric} at the same seed more than chance?",
        findings=tuple(_paired_finding(line, numbers.metric) for line in numbers.contrasts),
        tables=(
            text_table(
                f"Differences in {metric} at a seed, model less baseline (negative: the model is better)",
                PAIRED_HEAD,
                map(_paired_cells, numbers.contrasts),
            ),
        ),
        method=prose("method_pairs.txt", fewest=FEWEST),
        files={"pairs.csv": csv_lines([_paired_record(line) for line in numbers.contrasts], NO_TEST)},
    )


def _paired_finding(line: Contrast[PairComparison], metric: str) -> str:
    text = paired_verdict(line.comparison, line.p_adjusted, names=(line.group, line.baseline), metric=metric)
    if not line.unpaired:
        return text
    values = "value has" if line.unpaired == 1 else "values have"
    return f"{text} {line.unpaired} {values} no partner of the same seed and count nothing."


def _cells(line: Contrast[GroupComparison], corpora: list[str]) -> Iterator[Cell | str]:
    comparison = line.comparison
    yield from (line.group, Cell(line.baseline, kind="name"))
    yield Cell(f"{comparison.a.n} + {comparison.b.n}", comparison.a.n + comparison.b.n)
    yield formats.bounded(comparison.test.value, comparison.test.interval)
    yield formats.bounded(None, comparison.bootstrap.interval)
    yield from map(formats.p_value, (comparison.test.p_value, comparison.welch.p_value, line.p_adjusted))
    yield formats.bounded(comparison.effect.value, comparison.effect.interval)
    yield from map(_distance, (comparison.detectable.value, comparison.smallest_margin.value))
    yield from (formats.p_value(line.published.get(corpus)) for corpus in corpora)


def _paired_cells(line: Contrast[PairComparison]) -> Iterator[Cell | str | int]:
    comparison = line.comparison
    yield from (line.group, Cell(line.baseline, kind="name"), comparison.pairs)
    yield formats.bounded(comparison.test.value, comparison.test.interval)
    yield f"{comparison.lower} of {comparison.pairs}"
    yield from map(formats.p_value, (comparison.test.p_value, line.p_adjusted))
    yield formats.bounded(comparison.effect.value, comparison.effect.interval)
    yield from map(_distance, (comparison.detectable.value, comparison.smallest_margin.value))


def _distance(value: float | None) -> Cell:
    return Cell(formats.number(value, digits=2), value)


def _record(line: Contrast[GroupComparison], corpora: list[str]) -> dict[str, Any]:
    comparison, a, b = line.comparison, line.comparison.a, line.comparison.b
    return {
        **{"group": line.group, "baseline": line.baseline},
        **{"n_group": a.n, "mean_group": a.mean, "sd_group": a.sd},
        **{"n_baseline": b.n, "mean_baseline": b.mean, "sd_baseline": b.sd},
        "difference": comparison.test.value,
        **ends("difference", comparison.test.interval),
        **ends("difference_welch", comparison.welch.interval),
        **ends("bootstrap", comparison.bootstrap.interval),
        "student_t": comparison.test.t,
        "student_df": comparison.test.df,
        "student_p": comparison.test.p_value,
        "welch_t": comparison.welch.t,
        "welch_df": comparison.welch.df,
        "welch_p": comparison.welch.p_value,
        "holm_p": line.p_adjusted,
        "hedges_g": comparison.effect.value,
        **ends("hedges_g", comparison.effect.interval),
        "detectable_difference": comparison.detectable.value,
        "equal_within": comparison.smallest_margin.value,
        "missing": comparison.test.missing,
        **{f"published_p_{name}": line.published.get(name) for name in corpora},
    }


def _paired_record(line: Contrast[PairComparison]) -> dict[str, Any]:
    comparison, a, b = line.comparison, line.comparison.a, line.comparison.b
    return {
        **{"group": line.group, "baseline": line.baseline},
        **{"pairs": comparison.pairs, "without_partner": line.unpaired},
        **{"mean_group": a.mean, "sd_group": a.sd, "mean_baseline": b.mean, "sd_baseline": b.sd},
        "difference": comparison.test.value,
        "sd_difference": comparison.differences.sd,
        **ends("difference", comparison.test.interval),
        "pairs_lower": comparison.lower,
        "pairs_higher": comparison.higher,
        "paired_t": comparison.test.t,
        "paired_df": comparison.test.df,
        "paired_p": comparison.test.p_value,
        "holm_p": line.p_adjusted,
        "effect_of_differences": comparison.effect.value,
        **ends("effect_of_differences", comparison.effect.interval),
        "detectable_difference": comparison.detectable.value,
        "equal_within": comparison.smallest_margin.value,
        "missing": comparison.test.missing or comparison.detectable.missing,
    }
