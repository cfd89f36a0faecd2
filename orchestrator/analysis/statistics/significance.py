"""Is the difference between two groups' means more than the spread of their seeds explains? t-tests and Holm's family.

Everything is computed from n, mean and standard deviation, so raw values and a paper's printed ones go the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from orchestrator.analysis.statistics.estimates import Estimate, Interval, Statistic
from orchestrator.analysis.statistics.samples import (
    Names,
    SampleSummary,
    difference_of_means,
    obstacle,
    student_difference,
    welch_difference,
)

ROUNDING = 0.005
"""Half a unit of the last digit that the papers print of a mean and of a standard deviation."""


def students_t(a: SampleSummary, b: SampleSummary, *, names: Names = ("a", "b")) -> Statistic:
    """Student's unpaired t-test of a minus b, the two variances taken as equal (Student 1908; the paper's test)."""
    return _unpaired(student_difference, a, b, names)


def welch_t(a: SampleSummary, b: SampleSummary, *, names: Names = ("a", "b")) -> Statistic:
    """Welch's unpaired t-test of a minus b, which leaves each group its own variance (Welch 1947)."""
    return _unpaired(welch_difference, a, b, names)


def _unpaired(
    difference: Callable[[SampleSummary, SampleSummary], Estimate], a: SampleSummary, b: SampleSummary, names: Names
) -> Statistic:
    missing = obstacle(a, b, names=names)
    return Statistic(value=difference_of_means(a, b), missing=missing) if missing else difference(a, b).test()


def students_t_range(a: SampleSummary, b: SampleSummary, rounding: float = ROUNDING) -> Interval:
    """All p-values of Student's test that are compatible with means and deviations printed to +-`rounding` (> 0).

    p falls with the distance of the means and grows with either deviation (the degrees of freedom stay), so the ends
    are exact: means 2 `rounding` further apart with both deviations smaller, and the reverse.
    """
    from scipy.stats import ttest_ind_from_stats  # takes longer to import than a command that only lists may

    assert a.mean is not None and b.mean is not None and a.sd is not None and b.sd is not None
    distance = abs(a.mean - b.mean)
    # A decimal as binary floats have it must not fall off the end that it stands for.
    rounding *= 1 + 1e-9
    low, high = (
        ttest_ind_from_stats(
            max(distance - 2 * step, 0.0), max(a.sd + step, 0.0), a.n, 0.0, max(b.sd + step, 0.0), b.n
        ).pvalue
        for step in (-rounding, rounding)
    )
    return Interval(low=float(low), high=float(high))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Holm's step-down adjusted p-values over one family (Holm 1979), in the order given.

    None stays None and does not count in the family. Raises ValueError for what is no probability.
    """
    family = sorted((p_value, place) for place, p_value in enumerate(p_values) if p_value is not None)
    if bad := [p_value for p_value, _ in family if not 0 <= p_value <= 1]:
        raise ValueError(f"a p-value lies in [0, 1], got {bad}")
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for smaller, (p_value, place) in enumerate(family):
        adjusted[place] = largest = max(largest, min(1.0, (len(family) - smaller) * p_value))
    return adjusted
