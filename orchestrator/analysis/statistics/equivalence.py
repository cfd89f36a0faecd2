"""What a difference that is not significant leaves open: equivalence within a margin, and what could have been found.

"Not significant" never means "equal". Equivalence has a test of its own, and the seeds that were run have a smallest
difference that they could have shown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit

from orchestrator.analysis.statistics.correlation import Interval
from orchestrator.analysis.statistics.noncentral_t import noncentral_t_cdf, solve_increasing
from orchestrator.analysis.statistics.samples import Names, SampleSummary, difference_of_means, obstacle, welch_error
from orchestrator.analysis.statistics.significance import SIGNIFICANCE, interval_of

POWER = 0.8


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """Two one-sided t-tests; what the data do not allow is None, and `missing` says why in words."""

    margin: float
    p_value: float | None = None
    """The larger of the two, of the hypothesis that the means lie `margin` or more apart."""
    equivalent: bool | None = None
    """p below 0.05. False does not say that the groups differ."""
    interval: Interval | None = None
    """90%, of the mean of a minus the mean of b; inside +-margin exactly where `equivalent`."""
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class Distance:
    """A distance of two means in the metric's own unit, without a sign; None where `missing` says why in words."""

    value: float | None = None
    missing: str = ""


def tost(a: SampleSummary, b: SampleSummary, margin: float, *, names: Names = ("a", "b")) -> Equivalence:
    """Do the means lie less than `margin` apart? Two one-sided Welch t-tests (Schuirmann 1987) at 0.05.

    Choose the margin before seeing the numbers. Raises ValueError for a margin that is not positive.
    """
    if not 0 < margin < math.inf:
        raise ValueError(f"an equivalence margin is a positive number in the metric's unit, got {margin}")
    if missing := obstacle(a, b, names=names):
        return Equivalence(margin=margin, missing=missing)
    difference, (error, df) = difference_of_means(a, b), welch_error(a, b)
    assert difference is not None
    p_value = float(stdtr(df, (abs(difference) - margin) / error))
    return Equivalence(
        margin=margin,
        p_value=p_value,
        equivalent=p_value < SIGNIFICANCE,
        interval=interval_of(difference, error, df, confidence=1 - 2 * SIGNIFICANCE),
    )


def smallest_equivalence_margin(a: SampleSummary, b: SampleSummary, *, names: Names = ("a", "b")) -> Distance:
    """The larger absolute end of Welch's 90% interval: `tost` at 0.05 finds equivalence for every margin above it."""
    if missing := obstacle(a, b, names=names):
        return Distance(missing=missing)
    difference, (error, df) = difference_of_means(a, b), welch_error(a, b)
    assert difference is not None
    return Distance(value=interval_of(abs(difference), error, df, confidence=1 - 2 * SIGNIFICANCE).high)


def smallest_detectable_difference(
    sd_a: float | None,
    n_a: int,
    sd_b: float | None,
    n_b: int,
    power: float = POWER,
    alpha: float = SIGNIFICANCE,
    *,
    names: Names = ("a", "b"),
) -> Distance:
    """The smallest true difference of means that Welch's two-sided test at `alpha` finds with probability `power`.

    It takes the deviations as the true ones and t as noncentral t with Welch's degrees of freedom; for equal n and sd
    that is Student's test and exact (Cohen 1988, chapter 2), else the true power is within two points of 80% (measured
    in the tests). The observed difference plays no part in it.
    """
    if not 0 < alpha < power < 1:
        raise ValueError(f"alpha and power need 0 < alpha < power < 1, got alpha = {alpha}, power = {power}")
    a, b = (SampleSummary(n=n, mean=0.0 if n else None, sd=sd) for n, sd in ((n_a, sd_a), (n_b, sd_b)))
    if missing := obstacle(a, b, names=names):
        return Distance(missing=missing)
    return Distance(value=detectable_distance(*welch_error(a, b), power=power, alpha=alpha))


def detectable_distance(error: float, df: float, *, power: float = POWER, alpha: float = SIGNIFICANCE) -> float:
    """The smallest true distance from 0 that a two-sided t-test at `alpha` with this standard error finds with
    probability `power`."""
    critical = float(stdtrit(df, 1 - alpha / 2))

    def power_at(noncentrality: float) -> float:
        above = 1 - noncentral_t_cdf(critical, df, noncentrality)
        return above + noncentral_t_cdf(-critical, df, noncentrality)

    return error * solve_increasing(power_at, power, start=critical)
