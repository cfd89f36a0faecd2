"""What an estimated mean, or a difference of two, says: its t-test, its size in standard
deviations, what is left open.

"Not significant" never means "equal": the smallest margin says within what the means lie, and the
detectable distance what the seeds that were run could have shown."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, nctdtr, nctdtrinc, stdtr, stdtrit

CONFIDENCE = 0.95
TAILS = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
"""The quantiles at the ends of an interval."""
SIGNIFICANCE = 0.05
POWER = 0.8
Array = NDArray[np.float64]
Names = tuple[str, str]
"""What `missing` calls the two sides of a comparison or a correlation."""
LARGEST_T = 1e4
"""The noncentral t distribution has been checked up to here."""


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval: 95% where nothing else is said."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """A number computed from data; what the data do not allow is None, and `missing` says why in
    words."""

    value: float | None = None
    interval: Interval | None = None
    """95%, of the true value."""
    p_value: float | None = None
    """Two-sided, of the hypothesis that the true value is zero."""
    t: float | None = None
    df: float | None = None
    """Degrees of freedom."""
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A mean, or a difference of two, whose error follows Student's t."""

    value: float
    error: float
    """Standard error, positive."""
    df: float
    """Degrees of freedom."""

    @property
    def t(self) -> float:
        """How many standard errors lie between it and zero."""
        return self.value / self.error

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """The confidence interval."""
        half = float(stdtrit(self.df, 0.5 + confidence / 2)) * self.error
        return Interval(low=self.value - half, high=self.value + half)

    def test(self) -> Statistic:
        """The two-sided test that it is zero."""
        p_value = 2 * float(stdtr(self.df, -abs(self.t)))
        return Statistic(
            value=self.value, t=self.t, df=self.df, p_value=p_value, interval=self.interval()
        )

    def smallest_margin(self) -> float:
        """The larger absolute end of the 90% interval: two one-sided t-tests at 0.05 (Schuirmann
        1987) find two means equivalent within every margin above it."""
        interval = self.interval(1 - 2 * SIGNIFICANCE)
        return max(-interval.low, interval.high)

    def detectable(self) -> float:
        """The smallest true distance from zero that a two-sided t-test at 0.05 with this standard
        error finds with 80% power; the value itself plays no part in it.

        Exact for Student's test (Cohen 1988, chapter 2); with Welch's degrees of freedom, the power
        was within two points of 80% in simulations."""
        df, critical = self.df, stdtrit(self.df, 1 - SIGNIFICANCE / 2)
        return self.error * _root_near(
            nctdtrinc(df, 1 - POWER, critical),
            lambda shift: 1 - POWER - (nctdtr(df, shift, critical) - nctdtr(df, shift, -critical)),
        )

    def effect(self, sd: float) -> Statistic:
        """Hedges' g, the unbiased estimate of the value in units of `sd`, the deviation that the
        error rests on.

        The interval inverts the noncentral t distribution (Steiger and Fouladi 1997): exact for
        normal groups of one variance, so without Hedges' correction, and it leaves out zero exactly
        where the test is significant."""
        if self.df <= 1:
            return Statistic(missing="an effect size needs more than one degree of freedom")
        g = small_sample_correction(self.df) * self.value / sd
        if abs(self.t) > LARGEST_T:
            return Statistic(
                value=g,
                missing=f"the means lie over {LARGEST_T:,.0f} standard errors apart: no interval",
            )
        high, low = (_noncentrality(tail, self.t, self.df) for tail in TAILS)
        return Statistic(
            value=g, interval=Interval(low=low * self.error / sd, high=high * self.error / sd)
        )


def small_sample_correction(df: float) -> float:
    """J(df) = Gamma(df / 2) / (sqrt(df / 2) Gamma((df - 1) / 2)), by which d overstates (Hedges
    1981)."""
    return math.exp(float(gammaln(df / 2)) - float(gammaln((df - 1) / 2))) / math.sqrt(df / 2)


def _noncentrality(probability: float, t: float, df: float) -> float:
    """At which a noncentral t is at most `t` with this probability."""
    if t < 0:
        return -_noncentrality(1 - probability, -t, df)
    guess = nctdtrinc(df, probability, t)
    return _root_near(guess, lambda shift: nctdtr(df, shift, t) - probability)


def _root_near(guess: float, function: Callable[[float], float]) -> float:
    """scipy inverts the noncentral t distribution to three to six digits and has its values to all
    of them."""
    from scipy.optimize import brentq  # takes longer to import than a command that only lists may

    room = 0.02 * (1 + abs(guess))
    return float(brentq(function, guess - room, guess + room))


def codes(labels: Sequence[Any]) -> tuple[list[Any], NDArray[np.intp]]:
    """Return the different labels by first appearance, and the index of each label among them."""
    indices = {label: index for index, label in enumerate(dict.fromkeys(labels))}
    return list(indices), np.array([indices[label] for label in labels], dtype=np.intp)
