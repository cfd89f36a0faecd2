"""Significance tests between groups, or over pairs of one seed, with what they could and could not have shown.

"Not significant" is never reported as "equal".
"""

from __future__ import annotations

from typing import Any

from orchestrator.analysis import (
    FEWEST,
    POWER,
    SIGNIFICANCE,
    ContrastNumbers,
    GroupComparison,
    PairComparison,
    Statistic,
)
from orchestrator.report import formats
from orchestrator.report.prose import prose
from orchestrator.report.sections.group_figures import contrast_drawings
from orchestrator.report.sections.section import Section
from orchestrator.report.tables import Cell, csv_lines, ends, text_table
from orchestrator.words import counted

NO_TEST = ("group", "baseline")
"""The heading of a csv file without a test."""


def contrast_section(numbers: ContrastNumbers[GroupComparison]) -> Section:
    """The table and the verdicts of a Comparison request."""
    metric = formats.title(numbers.metric)
    printed = any(line.published is not None for line in numbers.comparisons)
    corpus = numbers.corpus if printed else ""
    beside = f", beside {numbers.source}" if printed and numbers.source else ""
    caption = f"Differences in {metric}, model less baseline ({_negative(numbers.metric)}){beside}"
    return Section(
        kind="tests",
        heading=f"Is the difference in {metric} more than chance?",
        findings=tuple(verdict(line, numbers.metric) for line in numbers.comparisons),
        tables=(text_table(caption, [_cells(line, corpus) for line in numbers.comparisons]),),
        method=prose("method_tests.txt"),
        files={"tests.csv": csv_lines([_record(line, corpus) for line in numbers.comparisons], NO_TEST)},
        drawings=contrast_drawings("tests", numbers, "the baseline's mean"),
    )


def paired_section(numbers: ContrastNumbers[PairComparison]) -> Section:
    """The table and the verdicts of a PairedComparison request."""
    metric = formats.title(numbers.metric)
    caption = f"Differences in {metric} at a seed, model less baseline ({_negative(numbers.metric)})"
    return Section(
        kind="pairs",
        heading=f"Is the difference in {metric} at the same seed more than chance?",
        findings=tuple(_paired_finding(line, numbers.metric) for line in numbers.comparisons),
        tables=(text_table(caption, map(_paired_cells, numbers.comparisons)),),
        method=prose("method_pairs.txt", fewest=FEWEST),
        files={"pairs.csv": csv_lines([_paired_record(line) for line in numbers.comparisons], NO_TEST)},
        drawings=contrast_drawings("pairs", numbers, "the baseline at the same seed"),
    )


def _negative(metric: str) -> str:
    """What a negative difference means: a low loss is good, and a low rank is neither."""
    return "negative: the model's is lower" if "rank" in metric else "negative: the model is better"


def _paired_finding(line: PairComparison, metric: str) -> str:
    text = verdict(line, metric)
    return (
        f"{text} Left out, without a partner of the same seed: {counted(line.unpaired, 'value')}."
        if line.unpaired
        else text
    )


def verdict(comparison: GroupComparison | PairComparison, metric: str) -> str:
    """Which group is lower and by how much, or what stays open, by Student's test (the paper's) or that of pairs.

    The p-value adjusted by Holm over its family alone decides, where there is one; the intervals and the detectable
    difference are those of this one comparison, not adjusted.
    """
    (group, baseline), test, title = comparison.names, comparison.test, formats.title(metric)
    if test.value is None or test.p_value is None or test.interval is None:
        return f"Nothing can be concluded about the {title} of {group} and {baseline}: {test.missing}."
    at = " at the same seed" if isinstance(comparison, PairComparison) else ""
    p_words, kind = formats.p_equals(test.p_value), "95% interval"
    decisive = test.p_value
    if comparison.p_adjusted is not None:
        decisive, kind = comparison.p_adjusted, "95% interval of this comparison alone"
        p_words = f"Holm-adjusted {formats.p_equals(decisive)}, {p_words} unadjusted"
    if decisive < SIGNIFICANCE:
        lower, higher = (group, baseline) if test.value < 0 else (baseline, group)
        near, far = sorted(map(abs, (test.interval.low, test.interval.high)))
        by, low, high = (formats.to_width(value, test.interval) for value in (abs(test.value), near, far))
        text = f"{lower} has a lower {title} than {higher}{at}, by {by} ({kind} {low} to {high}; {p_words})"
    else:
        low, high = (
            formats.to_width(end, test.interval, signed=True) for end in (test.interval.low, test.interval.high)
        )
        text = (
            f"The difference in {title} between {group} and {baseline}{at} is not significant ({p_words}): {group} "
            f"minus {baseline} may lie anywhere from {low} to {high} ({kind}), and {_detectable(comparison)}"
        )
    if isinstance(comparison, PairComparison):
        text = f"{text}; {group} is lower at {comparison.lower} of {comparison.pairs} seeds"
    return f"{text}."


def _detectable(comparison: GroupComparison | PairComparison) -> str:
    if comparison.detectable.value is None or comparison.test.interval is None:
        return f"no smallest difference that could have been shown is given: {comparison.detectable.missing}"
    n_a, n_b = comparison.a.n, comparison.b.n
    if isinstance(comparison, PairComparison):
        sample = f"{comparison.pairs} pairs"
    else:
        sample = f"{n_a} seeds of each" if n_a == n_b else f"{n_a} and {n_b} seeds"
    smallest = formats.to_width(comparison.detectable.value, comparison.test.interval)
    return f"the smallest difference that {sample} could have shown with {POWER:.0%} power is {smallest}"


def _cells(line: GroupComparison, corpus: str) -> dict[str, object]:
    (group, baseline), n_a, n_b = line.names, line.a.n, line.b.n
    cells: dict[str, object] = {
        "model": group,
        "against": Cell(baseline, kind="name"),
        "n": Cell(f"{n_a} + {n_b}", n_a + n_b),
        "difference [95%]": formats.bounded(line.test),
        "bootstrap [95%]": formats.bounded(line.bootstrap),
        "Student p": formats.p_value(line.test.p_value),
        "Welch p": formats.p_value(line.welch.p_value),
        **_last_cells(line, "Hedges' g [95%]"),
    }
    if corpus:
        cells[f"published {formats.corpus_title(corpus)}: p"] = formats.p_value(line.published)
    return cells


def _paired_cells(line: PairComparison) -> dict[str, object]:
    group, baseline = line.names
    return {
        "model": group,
        "against": Cell(baseline, kind="name"),
        "pairs": line.pairs,
        "difference [95%]": formats.bounded(line.test),
        "lower at": f"{line.lower} of {line.pairs}",
        "paired p": formats.p_value(line.test.p_value),
        **_last_cells(line, "effect of the differences [95%]"),
    }


def _last_cells(line: GroupComparison | PairComparison, effect: str) -> dict[str, object]:
    return {
        "Holm p": formats.p_value(line.p_adjusted),
        effect: formats.bounded(line.effect),
        "detectable": _distance(line.detectable),
        "equal within": _distance(line.smallest_margin),
    }


def _distance(distance: Statistic) -> Cell:
    return Cell(formats.number(distance.value, digits=2), distance.value)


def _record(line: GroupComparison, corpus: str) -> dict[str, Any]:
    (group, baseline), a, b = line.names, line.a, line.b
    record = {
        "group": group,
        "baseline": baseline,
        "n_group": a.n,
        "mean_group": a.mean,
        "sd_group": a.sd,
        "n_baseline": b.n,
        "mean_baseline": b.mean,
        "sd_baseline": b.sd,
        "difference": line.test.value,
        **ends("difference", line.test.interval),
        **ends("difference_welch", line.welch.interval),
        **ends("bootstrap", line.bootstrap.interval),
        **_test("student", line.test),
        **_test("welch", line.welch),
        **_shown(line, "hedges_g"),
        "missing": line.test.missing,
    }
    return record | ({f"published_p_{corpus}": line.published} if corpus else {})


def _paired_record(line: PairComparison) -> dict[str, Any]:
    (group, baseline), a, b = line.names, line.a, line.b
    return {
        "group": group,
        "baseline": baseline,
        "pairs": line.pairs,
        "without_partner": line.unpaired,
        "mean_group": a.mean,
        "sd_group": a.sd,
        "mean_baseline": b.mean,
        "sd_baseline": b.sd,
        "difference": line.test.value,
        "sd_difference": line.differences.sd,
        **ends("difference", line.test.interval),
        "pairs_lower": line.lower,
        "pairs_higher": line.higher,
        **_test("paired", line.test),
        **_shown(line, "effect_of_differences"),
        "missing": line.test.missing or line.detectable.missing,
    }


def _test(name: str, test: Statistic) -> dict[str, float | None]:
    return {f"{name}_t": test.t, f"{name}_df": test.df, f"{name}_p": test.p_value}


def _shown(line: GroupComparison | PairComparison, effect: str) -> dict[str, float | None]:
    """What the test says after Holm's correction, how large the effect is, and what could have been shown."""
    return {
        "holm_p": line.p_adjusted,
        effect: line.effect.value,
        **ends(effect, line.effect.interval),
        "detectable_difference": line.detectable.value,
        "equal_within": line.smallest_margin.value,
    }
