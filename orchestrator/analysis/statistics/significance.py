"""Is the difference between two groups' means more than the spread of their seeds explains? t-tests and Holm's family.

Everything is computed from n, mean and standard deviation, so raw values and a paper's printed ones go the same way.
`scipy.stats` and statsmodels have these tests too, but importing either takes longer than a whole report may; the tests
hold them against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from orchestrator.analysis.statistics.correlation import CONFIDENCE, Interval
from orchestrator.analysis.statistics.samples import (
    Names,
    SampleSummary,
    difference_of_means,
    obstacle,
    student_error,
    welch_error,
)

SIGNIFICANCE = 0.05
ROUNDING = 0.005
"""Half a unit of the last digit that the papers print of a mean and of a standard deviation."""


@dataclass(frozen=True, kw_only=True)
class TTest:
    """A t-test of two means; what the data do not allow is None, and `missing` says why in words."""

    difference: float | None = None
    """Mean of a minus mean of b."""
    t: float | None = None
    df: float | None = None
    """Degrees of freedom."""
    p_value: float | None = None
    """Two-sided, of the hypothesis that the two means are equal."""
    interval: Interval | None = None
    """95%, of the difference."""
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class PValueRange:
    """The p-values, both ends included, that printed means and standard deviations can stand for."""

    low: float | None = None
    high: float | None = None
    missing: str = ""

    def __contains__(self, p_value: float) -> bool:
        return self.low is not None and self.high is not None and self.low <= p_value <= self.high


def students_t(a: SampleSummary, b: SampleSummary, *, names: Names = ("a", "b")) -> TTest:
    """Student's unpaired t-test of a minus b, the two variances taken as equal (Student 1908; the paper's test)."""
    if missing := obstacle(a, b, names=names):
        return TTest(difference=difference_of_means(a, b), missing=missing)
    return t_test(difference_of_means(a, b), *student_error(a, b))


def welch_t(a: SampleSummary, b: SampleSummary, *, names: Names = ("a", "b")) -> TTest:
    """Welch's unpaired t-test of a minus b, which leaves each group its own variance (Welch 1947)."""
    if missing := obstacle(a, b, names=names):
        return TTest(difference=difference_of_means(a, b), missing=missing)
    return t_test(difference_of_means(a, b), *welch_error(a, b))


def students_t_range(
    a: SampleSummary, b: SampleSummary, rounding: float = ROUNDING, *, names: Names = ("a", "b")
) -> PValueRange:
    """All p-values of Student's test that are compatible with means and deviations printed to +-`rounding`.

    p falls with the distance of the means and grows with either deviation (the degrees of freedom stay), so the ends
    are exact: means 2 `rounding` further apart with both deviations smaller, and the reverse.
    """
    if rounding < 0:
        raise ValueError(f"rounding is half a unit of the last printed digit, so >= 0, got {rounding}")
    missing = obstacle(a, b, names=names, spread=False)
    if missing or rounding == 0:
        exact = students_t(a, b, names=names)
        return PValueRange(low=exact.p_value, high=exact.p_value, missing=exact.missing)
    difference = abs(difference_of_means(a, b) or 0.0)
    # A decimal as binary floats have it must not fall off the end that it stands for.
    rounding *= 1 + 1e-9
    return PValueRange(
        low=_p_at(difference + 2 * rounding, _widened(a, -rounding), _widened(b, -rounding)),
        high=_p_at(max(difference - 2 * rounding, 0.0), _widened(a, rounding), _widened(b, rounding)),
    )


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


def interval_of(difference: float, error: float, df: float, *, confidence: float = CONFIDENCE) -> Interval:
    """The confidence interval of a difference of means by Student's t."""
    half = float(stdtrit(df, 0.5 + confidence / 2)) * error
    return Interval(low=difference - half, high=difference + half)


def t_test(difference: float | None, error: float, df: float) -> TTest:
    """The test of a known difference of means with this standard error and so many degrees of freedom."""
    assert difference is not None
    t = difference / error
    return TTest(
        difference=difference, t=t, df=df, p_value=_two_sided(t, df), interval=interval_of(difference, error, df)
    )


def _two_sided(t: float, df: float) -> float:
    return 2 * float(stdtr(df, -abs(t)))


def _widened(sample: SampleSummary, by: float) -> SampleSummary:
    assert sample.sd is not None
    return SampleSummary(n=sample.n, mean=sample.mean, sd=max(sample.sd + by, 0.0))


def _p_at(difference: float, a: SampleSummary, b: SampleSummary) -> float:
    error, df = student_error(a, b)
    # With no spread left, any distance is infinitely many standard errors.
    return _two_sided(difference / error, df) if error > 0 else 0.0
