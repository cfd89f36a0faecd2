"""Pearson and Spearman correlation with 95% confidence intervals and p-values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from orchestrator.analysis.statistics.estimates import CONFIDENCE, Interval, Names, Statistic

NORMAL_QUANTILE = float(ndtri(0.5 + CONFIDENCE / 2))


def fisher_interval(value: float, n: int, *, variance: float | None = None) -> Interval:
    """The 95% interval tanh(artanh(r) -+ 1.96 sqrt(variance)) (Fisher 1921).

    `variance` is that of artanh(r): 1 / (n - 3) by default, which is Pearson's. Raises ValueError for fewer than 4
    pairs and for |r| = 1, where artanh is infinite.
    """
    if n < 4 or abs(value) >= 1:
        raise ValueError(f"an interval needs at least 4 pairs and |r| < 1, got n = {n}, r = {value}")
    centre = math.atanh(value)
    half = NORMAL_QUANTILE * math.sqrt(1 / (n - 3) if variance is None else variance)
    return Interval(low=math.tanh(centre - half), high=math.tanh(centre + half))


def correlate(x: ArrayLike, y: ArrayLike, *, ranks: bool = False, names: Names = ("x", "y")) -> Statistic:
    """Pearson's r of two equally long sequences of finite numbers, with Fisher's interval.

    Of their `ranks`, Spearman's rho, ties sharing their mean rank; the interval then has the variance
    (1 + rho^2 / 2) / (n - 3) of Bonett and Wright (2000). `names` are what `missing` calls the two. Raises ValueError
    where the lengths differ or a number is not finite.
    """
    x_n, y_n = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x_n.ndim != 1 or x_n.shape != y_n.shape:
        raise ValueError(f"a correlation needs two sequences of one length, got shapes {x_n.shape} and {y_n.shape}")
    if not (np.isfinite(x_n).all() and np.isfinite(y_n).all()):
        raise ValueError("a correlation needs finite numbers; leave out trials without a value")
    n = len(x_n)
    if n < 3:
        return Statistic(missing=f"a correlation needs at least 3 trials, there {_are(n)}")
    constant = [name for name, values in zip(names, (x_n, y_n), strict=True) if np.ptp(values) == 0]
    if constant:
        return Statistic(missing=f"{' and '.join(constant)} had the same value in all {n} trials")
    from scipy import stats  # takes longer to import than a command that only lists may

    result = (stats.spearmanr if ranks else stats.pearsonr)(x_n, y_n)
    value, p_value = float(result.statistic), float(result.pvalue)
    if 1 - abs(value) < 1e-12:
        return Statistic(value=float(round(value)), missing="the points lie on one line, which leaves no interval")
    if n < 4:
        return Statistic(value=value, p_value=p_value, missing=f"an interval needs 4 trials, there {_are(n)}")
    variance = (1 + value**2 / 2) / (n - 3) if ranks else None
    return Statistic(value=value, interval=fisher_interval(value, n, variance=variance), p_value=p_value)


def _are(n: int) -> str:
    return {0: "is none", 1: "is 1"}.get(n, f"are {n}")
