"""What a comparison of two groups allows to say, in one sentence. "Not significant" is never reported as "equal"."""

from __future__ import annotations

from orchestrator.analysis import POWER, SIGNIFICANCE, GroupComparison, Interval, Names, PairComparison, Statistic
from orchestrator.report import formats


def verdict(comparison: GroupComparison, p_adjusted: float | None, *, names: Names, metric: str) -> str:
    """Which group is lower and by how much, or what stays open, by Student's test (the paper's).

    `p_adjusted` is its p-value adjusted by Holm over its family, None where it stands alone. It alone decides; the
    intervals and the detectable difference are those of this one pair, not adjusted.
    """
    test, detectable = comparison.test, comparison.detectable
    if test.value is None or test.p_value is None or test.interval is None:
        return _nothing(test, names, metric)
    kind = "95% interval" if p_adjusted is None else "95% interval of this pair alone"
    if _significant(test.p_value, p_adjusted):
        lower, by, interval = _lower(test.value, test.interval, names=names, metric=metric)
        return f"{lower}, by {by} ({kind} {interval}; {_p_words(test.p_value, p_adjusted)})."
    text = f"{_open(test.p_value, p_adjusted, names, metric)}: {_interval(test.interval, names)} ({kind})"
    if detectable.value is None:
        return f"{text}."
    n_a, n_b = comparison.a.n, comparison.b.n
    seeds = f"{n_a} seeds of each" if n_a == n_b else f"{n_a} and {n_b} seeds"
    return f"{text}, and {_could_have(seeds, detectable.value, test.interval)}."


def paired_verdict(comparison: PairComparison, p_adjusted: float | None, *, names: Names, metric: str) -> str:
    """The same for pairs of one seed, by the paired t-test, and at how many seeds the difference goes which way."""
    test, detectable, pairs = comparison.test, comparison.detectable, comparison.pairs
    if test.value is None or test.p_value is None or test.interval is None:
        return _nothing(test, names, metric)
    kind = "95% interval" if p_adjusted is None else "95% interval of this comparison alone"
    if _significant(test.p_value, p_adjusted):
        lower, by, interval = _lower(test.value, test.interval, names=names, metric=metric)
        count = comparison.lower if test.value < 0 else comparison.higher
        p_words = _p_words(test.p_value, p_adjusted)
        return (
            f"{lower} at the same seed, by {by} in the mean ({kind} {interval}; {p_words}); it is lower at {count} of "
            f"{pairs} seeds."
        )
    could = (
        f"no smallest difference that they could have shown is given: {detectable.missing}"
        if detectable.value is None
        else _could_have(f"{pairs} pairs", detectable.value, test.interval)
    )
    text = (
        f"{_open(test.p_value, p_adjusted, names, metric, at=' at a seed')}: {_interval(test.interval, names)} ({kind})"
    )
    return f"{text}, {names[0]} is lower at {comparison.lower} of {pairs} seeds, and {could}."


def _nothing(test: Statistic, names: Names, metric: str) -> str:
    return f"Nothing can be concluded about the {formats.title(metric)} of {names[0]} and {names[1]}: {test.missing}."


def _significant(p_value: float, p_adjusted: float | None) -> bool:
    return (p_value if p_adjusted is None else p_adjusted) < SIGNIFICANCE


def _lower(difference: float, interval: Interval, *, names: Names, metric: str) -> tuple[str, str, str]:
    lower, higher = names if difference < 0 else names[::-1]
    near, far = sorted((interval.low, interval.high), key=abs)
    sign = -1 if difference < 0 else 1
    by, low, high = (formats.to_width(sign * value, interval) for value in (difference, near, far))
    return f"{lower} has a lower {formats.title(metric)} than {higher}", by, f"{low} to {high}"


def _open(p_value: float, p_adjusted: float | None, names: Names, metric: str, *, at: str = "") -> str:
    difference = f"The difference in {formats.title(metric)} between {names[0]} and {names[1]}{at}"
    return f"{difference} is not significant ({_p_words(p_value, p_adjusted)})"


def _interval(interval: Interval, names: Names) -> str:
    low, high = (formats.to_width(value, interval, signed=True) for value in (interval.low, interval.high))
    return f"{names[0]} minus {names[1]} may lie anywhere from {low} to {high}"


def _could_have(sample: str, difference: float, interval: Interval) -> str:
    smallest = formats.to_width(difference, interval)
    return f"the smallest difference that {sample} could have shown with {POWER:.0%} power is {smallest}"


def _p_words(p_value: float, p_adjusted: float | None) -> str:
    alone = f"p {formats.equals(formats.p_value(p_value))}"
    if p_adjusted is None:
        return alone
    return f"Holm-adjusted p {formats.equals(formats.p_value(p_adjusted))}, {alone} unadjusted"
