"""Estimated means and differences of means: t-test, effect size, power.

"Not significant" never means "equal": see `smallest_margin` and `detectable_value`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import gammaln, nctdtr, nctdtrinc, stdtr, stdtrit

CONFIDENCE = 0.95
TAILS = (1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2
SIGNIFICANCE = 0.05
POWER = 0.8
Array = NDArray[np.float64]
Names = tuple[str, str]
# Largest t for which scipy's noncentral t distribution was checked.
LARGEST_T = 1e4


class Interval(NamedTuple):
    """Confidence interval: 95% unless stated otherwise."""

    low: float
    high: float

    def __contains__(self, value: Any) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Statistic:
    """Number computed from data. If it or its interval is missing, `missing` is the reason."""

    value: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    """Two-sided; null hypothesis zero unless stated otherwise."""
    t: float | None = None
    df: float | None = None
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """Mean, or difference of two means, whose error follows Student's t."""

    value: float
    error: float
    """Standard error, positive."""
    df: float

    @property
    def t(self) -> float:
        """Distance from zero in standard errors."""
        return self.value / self.error

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Return Student's confidence interval."""
        half_width = float(stdtrit(self.df, 0.5 + confidence / 2)) * self.error
        return Interval(self.value - half_width, self.value + half_width)

    def test(self) -> Statistic:
        """Return the two-sided test against zero."""
        p_value = 2 * float(stdtr(self.df, -abs(self.t)))
        return Statistic(
            value=self.value, t=self.t, df=self.df, p_value=p_value, interval=self.interval()
        )

    def smallest_margin(self) -> float:
        """Return the smallest margin within which two one-sided t-tests find means equivalent.

        It is the larger absolute end of the 90% interval (Schuirmann 1987, each test at 0.05).
        """
        interval = self.interval(1 - 2 * SIGNIFICANCE)
        return max(-interval.low, interval.high)

    def detectable_value(self) -> float:
        """Return the smallest true value that a two-sided t-test at 0.05 finds with 80% power.

        It is exact for Student's test (Cohen 1988, chapter 2). In simulations, Welch's test had a
        power within two percentage points of 80%.
        """
        df, critical = self.df, stdtrit(self.df, 1 - SIGNIFICANCE / 2)
        return self.error * _root_near(
            nctdtrinc(df, 1 - POWER, critical),
            lambda shift: 1 - POWER - (nctdtr(df, shift, critical) - nctdtr(df, shift, -critical)),
        )

    def effect(self, sd: float) -> Statistic:
        """Return Hedges' g: the value in units of `sd`, without bias.

        `sd` is the deviation from which the error was computed. The interval inverts the noncentral
        t distribution (Steiger and Fouladi 1997). It is exact for normal groups of equal variance,
        so it is not corrected for bias. It excludes zero if and only if the test is significant.
        """
        if self.df <= 1:
            return Statistic(missing="an effect size needs more than one degree of freedom")
        g = small_sample_correction(self.df) * self.value / sd
        if abs(self.t) > LARGEST_T:
            return Statistic(
                value=g,
                missing=f"means over {LARGEST_T:,.0f} standard errors apart have no interval",
            )
        high, low = (_noncentrality(tail, self.t, self.df) for tail in TAILS)
        return Statistic(value=g, interval=Interval(low * self.error / sd, high * self.error / sd))


def small_sample_correction(df: float) -> float:
    """Return the factor that removes the bias of Cohen's d (Hedges 1981)."""
    return math.exp(float(gammaln(df / 2)) - float(gammaln((df - 1) / 2))) / math.sqrt(df / 2)


def _noncentrality(probability: float, t: float, df: float) -> float:
    if t < 0:
        return -_noncentrality(1 - probability, -t, df)
    guess = nctdtrinc(df, probability, t)
    return _root_near(guess, lambda shift: nctdtr(df, shift, t) - probability)


def _root_near(guess: float, function: Callable[[float], float]) -> float:
    # scipy inverts the noncentral t distribution to only 3 to 6 digits.
    from scipy.optimize import brentq  # slow to import

    margin = 0.02 * (1 + abs(guess))
    return float(brentq(function, guess - margin, guess + margin))


def indicators(labels: pd.DataFrame) -> Array:
    """Return a column per combination of labels, by first appearance: 1 in its rows, else 0."""
    code_N = labels.groupby(list(labels), sort=False, dropna=False).ngroup().to_numpy()
    return np.eye(code_N.max(initial=-1) + 1)[code_N]
