"""Groups of values, one a seed, as the few numbers that tests of their means need; t-tests of
these, and Holm's family.

Raw values and a paper's printed ones go the same way."""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from orchestrator.analysis.statistics.estimates import Estimate, Interval, Names, Statistic

FEWEST = 5
"""Values of each group that a bootstrap and a statement about power need: with fewer, both promise
too much."""
ROUNDING = 0.005
"""Half a unit of the last digit that the papers print of a mean and of a standard deviation."""


@dataclass(frozen=True, kw_only=True)
class SampleSummary:
    """What a t-test needs to know of a group: computed by `summarise_sample`, or as a paper prints
    it."""

    n: int
    mean: float | None
    """None where n is 0."""
    sd: float | None
    """With n - 1 in the denominator; None for fewer than 2 values."""


def summarise_sample(values: ArrayLike) -> SampleSummary:
    """n, mean and standard deviation (ddof 1) of a sequence of numbers, which may be empty.

    Raises ValueError where a number is not finite.
    """
    values_n = np.asarray(values, dtype=np.float64)
    if values_n.ndim != 1 or not np.isfinite(values_n).all():
        raise ValueError(
            f"a sample is a sequence of finite numbers, got {values!r}; leave out trials without a "
            f"value"
        )
    # Exact sums: numpy's mean of equal numbers can be off by rounding, and would leave a spread
    # where there is none.
    exact, n = values_n.tolist(), len(values_n)
    return SampleSummary(
        n=n,
        mean=statistics.mean(exact) if n else None,
        sd=statistics.stdev(exact) if n > 1 else None,
    )


def mean_interval(sample: SampleSummary) -> Interval | None:
    """95%, of the mean by Student's t; None for fewer than two values."""
    if sample.mean is None or sample.sd is None:
        return None
    return Estimate(
        value=sample.mean, error=sample.sd / math.sqrt(sample.n), df=sample.n - 1
    ).interval()


def difference_of_means(a: SampleSummary, b: SampleSummary) -> float | None:
    """Mean of a minus mean of b; None where one has no values."""
    return None if a.mean is None or b.mean is None else a.mean - b.mean


def student_difference(a: SampleSummary, b: SampleSummary) -> Estimate:
    """Mean of a minus mean of b, the error from the pooled variance; both have spread enough (see
    `obstacle`)."""
    assert a.mean is not None and b.mean is not None
    return Estimate(
        value=a.mean - b.mean,
        error=pooled_sd(a, b) * math.sqrt(1 / a.n + 1 / b.n),
        df=a.n + b.n - 2,
    )


def welch_difference(a: SampleSummary, b: SampleSummary) -> Estimate:
    """Mean of a minus mean of b with the Welch-Satterthwaite degrees of freedom; needs what
    `obstacle` asks for."""
    assert a.mean is not None and b.mean is not None and a.sd is not None and b.sd is not None
    error_a, error_b = a.sd / math.sqrt(a.n), b.sd / math.sqrt(b.n)
    error = math.hypot(error_a, error_b)
    # Shares of the variance instead of its fourth powers, which under- and overflow early.
    share_a, share_b = (error_a / error) ** 2, (error_b / error) ** 2
    df = 1 / (share_a**2 / (a.n - 1) + share_b**2 / (b.n - 1))
    return Estimate(value=a.mean - b.mean, error=error, df=df)


def pooled_sd(a: SampleSummary, b: SampleSummary) -> float:
    """The standard deviation that the two groups share, if they do."""
    assert a.sd is not None and b.sd is not None
    df = a.n + b.n - 2
    return math.hypot(a.sd * math.sqrt((a.n - 1) / df), b.sd * math.sqrt((b.n - 1) / df))


def obstacle(a: SampleSummary, b: SampleSummary, *, names: Names, fewest: int = 2) -> str:
    """Why the two cannot be held against each other, in words; empty where they can, with `fewest`
    values of each."""
    groups = tuple(zip((a, b), names, strict=True))
    if few := [f"{group.n or 'none'} of {name}" for group, name in groups if group.n < fewest]:
        verb = "is" if all(group.n < 2 for group, _ in groups if group.n < fewest) else "are"
        return (
            f"at least {fewest} values of each group are needed, there {verb} {' and '.join(few)}"
        )
    if max(a.sd or 0.0, b.sd or 0.0) < sys.float_info.min:
        return f"neither {names[0]} nor {names[1]} has any spread to hold their difference against"
    return ""


def t_test(
    a: SampleSummary, b: SampleSummary, *, equal_variances: bool = False, names: Names = ("a", "b")
) -> Statistic:
    """The unpaired t-test of a minus b: Welch's (1947), which leaves each group its own variance,
    or Student's (1908; the paper's test)."""
    difference = student_difference if equal_variances else welch_difference
    missing = obstacle(a, b, names=names)
    return (
        Statistic(value=difference_of_means(a, b), missing=missing)
        if missing
        else difference(a, b).test()
    )


def students_t_range(a: SampleSummary, b: SampleSummary, rounding: float = ROUNDING) -> Interval:
    """All p-values of Student's test that are compatible with means and deviations printed to
    +-`rounding` (> 0).

    p falls with the distance of the means and grows with either deviation (the degrees of freedom
    stay), so the ends are exact: means 2 `rounding` further apart with both deviations smaller, and
    the reverse."""
    from scipy.stats import (
        ttest_ind_from_stats,
    )  # takes longer to import than a command that only lists may

    assert a.mean is not None and b.mean is not None and a.sd is not None and b.sd is not None
    distance = abs(a.mean - b.mean)
    # A decimal as binary floats have it must not fall off the end that it stands for.
    rounding *= 1 + 1e-9
    low, high = (
        ttest_ind_from_stats(
            max(distance - 2 * step, 0.0),
            max(a.sd + step, 0.0),
            a.n,
            0.0,
            max(b.sd + step, 0.0),
            b.n,
        ).pvalue
        for step in (-rounding, rounding)
    )
    return Interval(low=float(low), high=float(high))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p-values over one family (Holm 1979), in the order given.

    None stays None and does not count in the family. Raises ValueError for what is no probability.
    """
    family = sorted(
        (p_value, place) for place, p_value in enumerate(p_values) if p_value is not None
    )
    if bad := [p_value for p_value, _ in family if not 0 <= p_value <= 1]:
        raise ValueError(f"a p-value lies in [0, 1], got {bad}")
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for smaller, (p_value, place) in enumerate(family):
        adjusted[place] = largest = max(largest, min(1.0, (len(family) - smaller) * p_value))
    return adjusted


def with_holm(lines: Sequence[Any], test: str) -> tuple[Any, ...]:
    """Return dataclasses with `p_adjusted` set, Holm's family being all of them; the field `test`
    is a Statistic or None."""
    adjusted = holm(
        [statistic.p_value if (statistic := getattr(line, test)) else None for line in lines]
    )
    return tuple(
        replace(line, p_adjusted=p_value) for line, p_value in zip(lines, adjusted, strict=True)
    )
