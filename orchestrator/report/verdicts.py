"""What a comparison of two groups allows to say, in one sentence. "Not significant" is never reported as "equal"."""

from __future__ import annotations

from orchestrator.analysis import POWER, SIGNIFICANCE, GroupComparison, PairComparison
from orchestrator.report import formats


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
