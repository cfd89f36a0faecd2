"""What a comparison of two groups allows to say, in one sentence. "Not significant" is never reported as "equal"."""

from __future__ import annotations

from typing import Literal

from orchestrator.analysis.statistics.correlation import Interval
from orchestrator.analysis.statistics.estimates import POWER, SIGNIFICANCE
from orchestrator.analysis.statistics.group_comparison import GroupComparison
from orchestrator.analysis.statistics.pairs import PairComparison
from orchestrator.analysis.statistics.samples import Names
from orchestrator.report import formats


def verdict(
    comparison: GroupComparison,
    p_adjusted: float | None,
    *,
    names: Names,
    metric: str,
    test: Literal["student", "welch"] = "student",
) -> str:
    """Which group is lower and by how much, or what stays open, by Student's test (the paper's) or Welch's.

    `p_adjusted` is that test's p-value adjusted by Holm over its family, None where it stands alone. It alone decides;
    the intervals and the detectable difference are those of this one pair, not adjusted.
    """
    found = comparison.student if test == "student" else comparison.welch
    metric = formats.title(metric)
    if found.difference is None or found.p_value is None or found.interval is None:
        return f"Nothing can be concluded about the {metric} of {names[0]} and {names[1]}: {found.missing}."
    p_words = _p_words(found.p_value, p_adjusted)
    kind = "95% interval" if p_adjusted is None else "95% interval of this pair alone"
    if (found.p_value if p_adjusted is None else p_adjusted) < SIGNIFICANCE:
        lower, by, interval = _lower(found.difference, found.interval, names=names, metric=metric)
        text = f"{lower}, by {by} ({kind} {interval}; {p_words})"
    else:
        text = f"The difference in {metric} between {names[0]} and {names[1]} is not significant ({p_words}): "
        text += f"{_left_open(found.interval, names=names)} ({kind}){_detectable(comparison, found.interval)}"
    return f"{text}."


def paired_verdict(comparison: PairComparison, p_adjusted: float | None, *, names: Names, metric: str) -> str:
    """The same for pairs of one seed, by the paired t-test, and at how many seeds the difference goes which way."""
    found, metric = comparison.test, formats.title(metric)
    if found.difference is None or found.p_value is None or found.interval is None:
        return f"Nothing can be concluded about the {metric} of {names[0]} and {names[1]}: {found.missing}."
    p_words = _p_words(found.p_value, p_adjusted)
    kind = "95% interval" if p_adjusted is None else "95% interval of this comparison alone"
    if (found.p_value if p_adjusted is None else p_adjusted) < SIGNIFICANCE:
        lower, by, interval = _lower(found.difference, found.interval, names=names, metric=metric)
        count = comparison.lower if found.difference < 0 else comparison.higher
        return (
            f"{lower} at the same seed, by {by} in the mean ({kind} {interval}; {p_words}); it is lower at {count} of "
            f"{comparison.pairs} seeds."
        )
    detectable = comparison.detectable
    could = (
        f"no smallest difference that they could have shown is given: {detectable.missing}"
        if detectable.value is None
        else f"the smallest difference that {comparison.pairs} pairs could have shown with {POWER:.0%} power is "
        f"{formats.to_width(detectable.value, found.interval)}"
    )
    return (
        f"The difference in {metric} between {names[0]} and {names[1]} at a seed is not significant ({p_words}): "
        f"{_left_open(found.interval, names=names)} ({kind}), {names[0]} is lower at {comparison.lower} of "
        f"{comparison.pairs} seeds, and {could}."
    )


def _lower(difference: float, interval: Interval, *, names: Names, metric: str) -> tuple[str, str, str]:
    lower, higher = names if difference < 0 else names[::-1]
    near, far = sorted((interval.low, interval.high), key=abs)
    sign = -1 if difference < 0 else 1
    by, low, high = (formats.to_width(sign * value, interval) for value in (difference, near, far))
    return f"{lower} has a lower {metric} than {higher}", by, f"{low} to {high}"


def _left_open(interval: Interval, *, names: Names) -> str:
    low, high = (formats.to_width(value, interval, signed=True) for value in (interval.low, interval.high))
    return f"{names[0]} minus {names[1]} may lie anywhere from {low} to {high}"


def _detectable(comparison: GroupComparison, interval: Interval) -> str:
    if comparison.detectable.value is None:
        return ""
    n_a, n_b = comparison.a.n, comparison.b.n
    seeds = f"{n_a} seeds of each" if n_a == n_b else f"{n_a} and {n_b} seeds"
    smallest = formats.to_width(comparison.detectable.value, interval)
    return f", and the smallest difference that {seeds} could have shown with {POWER:.0%} power is {smallest}"


def _p_words(p_value: float, p_adjusted: float | None) -> str:
    alone = f"p {formats.equals(formats.p_value(p_value))}"
    if p_adjusted is None:
        return alone
    return f"Holm-adjusted p {formats.equals(formats.p_value(p_adjusted))}, {alone} unadjusted"
