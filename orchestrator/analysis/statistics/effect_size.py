"""How far apart two groups lie in units of the spread that they share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from scipy.special import gammaln

from orchestrator.analysis.statistics.correlation import CONFIDENCE, Interval
from orchestrator.analysis.statistics.noncentral_t import noncentrality_at
from orchestrator.analysis.statistics.samples import Names, SampleSummary, obstacle, pooled_sd
from orchestrator.analysis.statistics.significance import students_t

LARGEST_T = 1e4
"""The noncentral t distribution has been checked up to here."""


@dataclass(frozen=True, kw_only=True)
class EffectSize:
    """A standardised difference of means; what the data do not allow is None, and `missing` says why in words."""

    g: float | None = None
    """Positive where a's mean is the higher one."""
    interval: Interval | None = None
    """95%, of the true standardised difference."""
    missing: str = ""


def hedges_g(a: SampleSummary, b: SampleSummary, *, names: Names = ("a", "b")) -> EffectSize:
    """Hedges' g = J(n_a + n_b - 2) (mean a - mean b) / pooled sd, the unbiased estimate of the standardised difference.

    J is the exact correction of Hedges (1981), see `small_sample_correction`. The interval inverts the noncentral t
    distribution of Student's t (Steiger and Fouladi 1997): exact for normal groups of one variance, so without J, and
    it leaves out zero exactly where Student's test is significant.
    """
    if missing := obstacle(a, b, names=names):
        return EffectSize(missing=missing)
    test = students_t(a, b)
    assert test.difference is not None and test.t is not None and test.df is not None
    g = small_sample_correction(test.df) * test.difference / pooled_sd(a, b)
    return with_interval(g, test.t, test.df, unit=math.sqrt(1 / a.n + 1 / b.n))


def with_interval(g: float, t: float, df: float, *, unit: float) -> EffectSize:
    """The effect with the interval that inverts the noncentral t distribution, a noncentrality being so many `unit`s
    of it."""
    if abs(t) > LARGEST_T:
        return EffectSize(g=g, missing=f"the means lie over {LARGEST_T:,.0f} standard errors apart: no interval")
    near, far = (noncentrality_at(0.5 + side * CONFIDENCE / 2, abs(t), df) * unit for side in (1, -1))
    return EffectSize(g=g, interval=Interval(low=near, high=far) if t >= 0 else Interval(low=-far, high=-near))


def small_sample_correction(df: float) -> float:
    """J(df) = Gamma(df / 2) / (sqrt(df / 2) Gamma((df - 1) / 2)), by which d overstates (Hedges 1981)."""
    return math.exp(float(gammaln(df / 2)) - float(gammaln((df - 1) / 2))) / math.sqrt(df / 2)
