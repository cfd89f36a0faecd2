"""Significance tests between groups, paired by seed, with what they could and could not have shown.

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


def contrast_section(numbers: ContrastNumbers) -> Section:
    """The table and the verdicts of a Comparison request."""
    metric, lines = formats.title(numbers.metric), numbers.comparisons
    printed = any(line.published is not None for line in lines)
    corpus = numbers.corpus if printed else ""
    beside = f", beside {numbers.source}" if printed and numbers.source else ""
    # A low loss is good, and a low rank is neither.
    negative = "the model's is lower" if "rank" in numbers.metric else "the model is better"
    caption = f"Differences in {metric}, model less baseline (negative: {negative}){beside}"
    return Section(
        kind="tests",
        heading=f"Is the difference in {metric} more than chance?",
        findings=tuple(verdict(line, numbers.metric) for line in lines),
        tables=(text_table(caption, [_cells(line, corpus) for line in lines]),),
        method=prose("method_tests.txt", fewest=FEWEST),
        files={"tests.csv": csv_lines([_record(line, corpus) for line in lines], NO_TEST)},
        drawings=contrast_drawings(numbers),
    )


def verdict(comparison: GroupComparison, metric: str) -> str:
    """Which group is lower and by how much, or what stays open.

    The p-value adjusted by Holm over its family alone decides, where there is one; the intervals
    and the detectable difference are those of this one comparison, not adjusted."""
    (group, baseline), test, title = comparison.names, comparison.test, formats.title(metric)
    if test.value is None or test.p_value is None or test.interval is None:
        return (
            f"Nothing can be concluded about the {title} of {group} and {baseline}: {test.missing}."
        )
    at = " at the same seed" if comparison.is_paired else ""
    p_words, kind = formats.p_equals(test.p_value), "95% interval"
    decisive = test.p_value
    if comparison.p_adjusted is not None:
        decisive, kind = comparison.p_adjusted, "95% interval of this comparison alone"
        p_words = f"Holm-adjusted {formats.p_equals(decisive)}, {p_words} unadjusted"
    if decisive < SIGNIFICANCE:
        lower, higher = (group, baseline) if test.value < 0 else (baseline, group)
        near, far = sorted(map(abs, (test.interval.low, test.interval.high)))
        by, low, high = (
            formats.to_width(value, test.interval) for value in (abs(test.value), near, far)
        )
        text = f"{lower} has a lower {title} than {higher}{at}, by {by} ({kind} {low} to {high}; {p_words})"
    else:
        low, high = (
            formats.to_width(end, test.interval, signed=True)
            for end in (test.interval.low, test.interval.high)
        )
        text = (
            f"The difference in {title} between {group} and {baseline}{at} is not significant "
            f"({p_words}): {group} "
            f"minus {baseline} may lie anywhere from {low} to {high} ({kind}), and "
            f"{_detectable(comparison)}"
        )
    if not comparison.is_paired:
        return f"{text}. The test is unpaired (Welch's), as fewer than two seeds have one trial of each."
    text = f"{text}; {group} is lower at {comparison.lower} of {comparison.differences.n} seeds."
    alone = comparison.without_partner
    return (
        f"{text} Excluded for lack of a partner with the same seed: {counted(alone, 'value')}."
        if alone
        else text
    )


def _detectable(comparison: GroupComparison) -> str:
    if comparison.detectable.value is None or comparison.test.interval is None:
        return f"no smallest difference that could have been shown is given: {comparison.detectable.missing}"
    n_a, n_b = comparison.a.n, comparison.b.n
    if comparison.is_paired:
        sample = f"{comparison.differences.n} pairs"
    else:
        sample = f"{n_a} seeds of each" if n_a == n_b else f"{n_a} and {n_b} seeds"
    smallest = formats.to_width(comparison.detectable.value, comparison.test.interval)
    return f"the smallest difference that {sample} could have shown with {POWER:.0%} power is {smallest}"


def _cells(line: GroupComparison, corpus: str) -> dict[str, object]:
    (group, baseline), pairs = line.names, line.differences.n
    cells: dict[str, object] = {
        "model": group,
        "against": Cell(baseline, kind="name"),
        "lower at": f"{line.lower} of {pairs}"
        if line.is_paired
        else f"unpaired, {line.a.n} + {line.b.n}",
        "difference [95%]": formats.bounded(line.test),
        "p": formats.p_value(line.test.p_value),
        "Holm p": formats.p_value(line.p_adjusted),
        "effect [95%]": formats.bounded(line.effect),
        "detectable": _distance(line.detectable),
        "equal within": _distance(line.smallest_margin),
        "r over seeds": formats.coefficient(line.correlation.value),
        "unpaired [95%]": formats.bounded(line.unpaired),
        f"unpaired p{' (as in the paper)' if corpus else ''}": formats.p_value(
            line.unpaired.p_value
        ),
    }
    if corpus:
        cells[f"published {formats.corpus_title(corpus)}: p"] = formats.p_value(line.published)
    return cells


def _distance(distance: Statistic) -> Cell:
    return Cell(formats.number(distance.value, digits=2), distance.value)


def _record(line: GroupComparison, corpus: str) -> dict[str, Any]:
    (group, baseline), a, b = line.names, line.a, line.b
    record = {
        "group": group,
        "baseline": baseline,
        "pairs": line.differences.n,
        "pairs_lower": line.lower,
        "without_partner": line.without_partner,
        "n_group": a.n,
        "mean_group": a.mean,
        "sd_group": a.sd,
        "n_baseline": b.n,
        "mean_baseline": b.mean,
        "sd_baseline": b.sd,
        "correlation": line.correlation.value,
        **ends("correlation", line.correlation.interval),
        "test": "paired" if line.is_paired else "Welch",
        **_test("difference", line.test),
        "sd_difference": line.differences.sd,
        "holm_p": line.p_adjusted,
        "effect": line.effect.value,
        **ends("effect", line.effect.interval),
        "detectable_difference": line.detectable.value,
        "equal_within": line.smallest_margin.value,
        **_test("unpaired", line.unpaired),
        "missing": line.test.missing or line.detectable.missing,
    }
    return record | ({f"published_p_{corpus}": line.published} if corpus else {})


def _test(name: str, test: Statistic) -> dict[str, float | None]:
    return {
        name: test.value,
        **ends(name, test.interval),
        f"{name}_t": test.t,
        f"{name}_df": test.df,
        f"{name}_p": test.p_value,
    }
