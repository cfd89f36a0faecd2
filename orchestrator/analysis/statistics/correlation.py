"""Pearson and Spearman correlation with 95% confidence intervals and p-values.

`scipy.stats` has these too, but importing it takes longer than a whole report may; the tests hold the two against each
other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri, stdtr

from trainables.measurements.mean_ranks import mean_ranks

CONFIDENCE = 0.95
NORMAL_QUANTILE = float(ndtri(0.5 + CONFIDENCE / 2))

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A confidence interval: 95% where nothing else is said."""

    low: float
    high: float

    def __contains__(self, value: float) -> bool:
        return self.low <= value <= self.high


@dataclass(frozen=True, kw_only=True)
class Coefficient:
    """A correlation coefficient; what the data do not allow is None, and `missing` says why in words."""

    n: int
    """Number of pairs."""
    value: float | None = None
    interval: Interval | None = None
    p_value: float | None = None
    """Two-sided, of the hypothesis that there is no correlation, by Student's t with n - 2 degrees of freedom."""
    missing: str = ""


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


def pearson(x: ArrayLike, y: ArrayLike, *, names: tuple[str, str] = ("x", "y")) -> Coefficient:
    """Pearson's r of two equally long sequences of finite numbers, with Fisher's interval.

    `names` are what `missing` calls the two. Raises ValueError where the lengths differ or a number is not finite.
    """
    x_n, y_n = _checked(x, y)
    return _coefficient(x_n, y_n, names=names, bonett_wright=False)


def spearman(x: ArrayLike, y: ArrayLike, *, names: tuple[str, str] = ("x", "y")) -> Coefficient:
    """Spearman's rho: Pearson's r of the ranks, ties sharing their mean rank.

    The interval is Fisher's with the variance (1 + rho^2 / 2) / (n - 3) of Bonett and Wright (2000). Raises ValueError
    where the lengths differ or a number is not finite.
    """
    x_n, y_n = _checked(x, y)
    return _coefficient(mean_ranks(x_n), mean_ranks(y_n), names=names, bonett_wright=True)


def _checked(x: ArrayLike, y: ArrayLike) -> tuple[Vector, Vector]:
    x_n, y_n = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x_n.ndim != 1 or x_n.shape != y_n.shape:
        raise ValueError(f"a correlation needs two sequences of one length, got shapes {x_n.shape} and {y_n.shape}")
    if not (np.isfinite(x_n).all() and np.isfinite(y_n).all()):
        raise ValueError("a correlation needs finite numbers; leave out trials without a value")
    return x_n, y_n


def _coefficient(x_n: Vector, y_n: Vector, *, names: tuple[str, str], bonett_wright: bool) -> Coefficient:
    n = len(x_n)
    if n < 3:
        return Coefficient(n=n, missing=f"a correlation needs at least 3 trials, there {_are(n)}")
    constant = [name for name, values in zip(names, (x_n, y_n), strict=True) if np.ptp(values) == 0]
    if constant:
        return Coefficient(n=n, missing=f"{' and '.join(constant)} had the same value in all {n} trials")
    value = _product_moment(x_n, y_n)
    if abs(value) == 1:
        return Coefficient(n=n, value=value, missing="the points lie on one line, which leaves no interval")
    p_value = 2 * float(stdtr(n - 2, -abs(value) * math.sqrt((n - 2) / ((1 - value) * (1 + value)))))
    if n < 4:
        return Coefficient(n=n, value=value, p_value=p_value, missing=f"an interval needs 4 trials, there {_are(n)}")
    variance = (1 + value**2 / 2) / (n - 3) if bonett_wright else None
    return Coefficient(n=n, value=value, interval=fisher_interval(value, n, variance=variance), p_value=p_value)


def _product_moment(x_n: Vector, y_n: Vector) -> float:
    x_n, y_n = _standardised(x_n), _standardised(y_n)
    return float(np.clip(x_n @ y_n, -1.0, 1.0))


def _standardised(values: Vector) -> Vector:
    """Mean 0, length 1, scaled twice on the way so that no square over- or underflows."""
    values = values / np.abs(values).max()
    values = values - values.mean()
    values = values / np.abs(values).max()
    standardised: Vector = values / np.linalg.norm(values)
    return standardised


def _are(n: int) -> str:
    return {0: "is none", 1: "is 1"}.get(n, f"are {n}")
