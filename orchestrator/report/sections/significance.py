"""Significance tests between groups, or over pairs of one seed, with what they could and could not have shown."""

from __future__ import annotations

from typing import Any

from orchestrator.analysis import FEWEST, Contrast, ContrastNumbers, GroupComparison, PairComparison, Statistic
from orchestrator.report import formats
from orchestrator.report.prose import prose
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, csv_lines, ends, text_table
from orchestrator.report.verdicts import verdict
from orchestrator.words import counted

NO_TEST = ("group", "baseline")
"""The heading of a csv file without a test."""


def contrast_section(numbers: ContrastNumbers[GroupComparison]) -> Section:
    """The table and the verdicts of a Comparison request."""
    metric = formats.title(numbers.metric)
    corpora = list(dict.fromkeys(name for line in numbers.contrasts for name in line.published))
    beside = f", beside {numbers.source}" if corpora and numbers.source else ""
    caption = f"Differences in {metric}, model less baseline (negative: the model is better){beside}"
    return Section(
        kind="tests",
        heading=f"Is the difference in {metric} more than chance?",
        findings=tuple(verdict(line, numbers.metric) for line in numbers.contrasts),
        tables=(text_table(caption, [_cells(line, corpora) for line in numbers.contrasts]),),
        method=prose("method_tests.txt"),
        files={"tests.csv": csv_lines([_record(line, corpora) for line in numbers.contrasts], NO_TEST)},
    )


def paired_section(numbers: ContrastNumbers[PairComparison]) -> Section:
    """The table and the verdicts of a PairedComparison request."""
    metric = formats.title(numbers.metric)
    caption = f"Differences in {metric} at a seed, model less baseline (negative: the model is better)"
    return Section(
        kind="pairs",
        heading=f"Is the difference in {metric} at the same seed more than chance?",
        findings=tuple(_paired_finding(line, numbers.metric) for line in numbers.contrasts),
        tables=(text_table(caption, map(_paired_cells, numbers.contrasts)),),
        method=prose("method_pairs.txt", fewest=FEWEST),
        files={"pairs.csv": csv_lines([_paired_record(line) for line in numbers.contrasts], NO_TEST)},
    )


def _paired_finding(line: Contrast[PairComparison], metric: str) -> str:
    text = verdict(line, metric)
    return (
        f"{text} Left out, without a partner of the same seed: {counted(line.unpaired, 'value')}."
        if line.unpaired
        else text
    )


def _cells(line: Contrast[GroupComparison], corpora: list[str]) -> dict[str, object]:
    comparison, n_a, n_b = line.comparison, line.comparison.a.n, line.comparison.b.n
    return {
        **{"model": line.group, "against": Cell(line.baseline, kind="name")},
        "n": Cell(f"{n_a} + {n_b}", n_a + n_b),
        "difference [95%]": formats.bounded(comparison.test),
        "bootstrap [95%]": formats.bounded(comparison.bootstrap),
        "Student p": formats.p_value(comparison.test.p_value),
        "Welch p": formats.p_value(comparison.welch.p_value),
        **_last_cells(line, "Hedges' g [95%]"),
        **{f"published {formats.corpus_title(name)}: p": formats.p_value(line.published.get(name)) for name in corpora},
    }


def _paired_cells(line: Contrast[PairComparison]) -> dict[str, object]:
    comparison = line.comparison
    return {
        **{"model": line.group, "against": Cell(line.baseline, kind="name")},
        "pairs": comparison.pairs,
        "difference [95%]": formats.bounded(comparison.test),
        "lower at": f"{comparison.lower} of {comparison.pairs}",
        "paired p": formats.p_value(comparison.test.p_value),
        **_last_cells(line, "effect of the differences [95%]"),
    }


def _last_cells(line: Contrast[Any], effect: str) -> dict[str, object]:
    comparison = line.comparison
    return {
        "Holm p": formats.p_value(line.p_adjusted),
        effect: formats.bounded(comparison.effect),
        "detectable": _distance(comparison.detectable),
        "equal within": _distance(comparison.smallest_margin),
    }


def _distance(distance: Statistic) -> Cell:
    return Cell(formats.number(distance.value, digits=2), distance.value)


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
        **_test("student", comparison.test),
        **_test("welch", comparison.welch),
        **_shown(line, "hedges_g"),
        "missing": comparison.test.missing,
        **{f"published_p_{name}": line.published.get(name) for name in corpora},
    }


def _paired_record(line: Contrast[PairComparison]) -> dict[str, Any]:
    comparison, a, b = line.comparison, line.comparison.a, line.comparison.b
    return {
        **{"group": line.group, "baseline": line.baseline},
        **{"pairs": comparison.pairs, "without_partner": line.unpaired},
        **{"mean_group": a.mean, "sd_group": a.sd, "mean_baseline": b.mean, "sd_baseline": b.sd},
        **{"difference": comparison.test.value, "sd_difference": comparison.differences.sd},
        **ends("difference", comparison.test.interval),
        **{"pairs_lower": comparison.lower, "pairs_higher": comparison.higher},
        **_test("paired", comparison.test),
        **_shown(line, "effect_of_differences"),
        "missing": comparison.test.missing or comparison.detectable.missing,
    }


def _test(name: str, test: Statistic) -> dict[str, float | None]:
    return {f"{name}_t": test.t, f"{name}_df": test.df, f"{name}_p": test.p_value}


def _shown(line: Contrast[Any], effect: str) -> dict[str, float | None]:
    """What the test says after Holm's correction, how large the effect is, and what could have been shown."""
    return {
        "holm_p": line.p_adjusted,
        effect: line.comparison.effect.value,
        **ends(effect, line.comparison.effect.interval),
        "detectable_difference": line.comparison.detectable.value,
        "equal_within": line.comparison.smallest_margin.value,
    }
