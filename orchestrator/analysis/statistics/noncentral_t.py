"""The noncentral t distribution: what a t statistic follows where the two true means differ."""

from __future__ import annotations

import math
from collections.abc import Callable

from scipy.special import nctdtr


def noncentral_t_cdf(t: float, df: float, noncentrality: float) -> float:
    """P(T <= t) for T = (Z + noncentrality) / sqrt(chi2 / df)."""
    value = float(nctdtr(df, noncentrality, t))
    if math.isnan(value):
        # scipy gives no number where a tail is thinner than about 1e-13; the tests hold this against an integral.
        return 0.0 if t < noncentrality else 1.0
    return min(max(value, 0.0), 1.0)


def noncentrality_at(probability: float, t: float, df: float) -> float:
    """The noncentrality at which P(T <= t) is `probability`."""
    return solve_increasing(lambda shift: -noncentral_t_cdf(t, df, shift), -probability, start=t)


def solve_increasing(function: Callable[[float], float], target: float, *, start: float = 0.0) -> float:
    """Where an increasing function reaches `target`, to the last bits, by bisection from around `start`.

    `scipy.optimize` has faster ways, but importing it takes longer than these few hundred evaluations.
    """
    step = 1.0
    while function(start - step) > target:
        step *= 2
    low, high, step = start - step, start + step, 1.0
    while function(high) < target:
        high, step = high + step, step * 2
    while low < (middle := (low + high) / 2) < high:
        low, high = (middle, high) if function(middle) < target else (low, middle)
    return high
