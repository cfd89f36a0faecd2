"""Pearson, Spearman and partial correlation with 95% confidence intervals and p-values."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtr

from orchestrator.analysis.statistics.estimates import CONFIDENCE, Interval, Names, Statistic

NORMAL_QUANTILE = float(ndtri(0.5 + CONFIDENCE / 2))


def fisher_interval(value: float, n: int, *, variance: float | None = None) -> Interval:
    """The 95% interval tanh(artanh(r) -+ 1.96 sqrt(variance)) (Fisher 1921).

    `variance` is that of artanh(r): 1 / (n - 3) by default, which is Pearson's. Raises ValueError
    for fewer than 4 pairs and for |r| = 1, where artanh is infinite."""
    if n < 4 or abs(value) >= 1:
        raise ValueError(
            f"an interval needs at least 4 pairs and |r| < 1, got n = {n}, r = {value}"
        )
    centre = math.atanh(value)
    half = NORMAL_QUANTILE * math.sqrt(1 / (n - 3) if variance is None else variance)
    return Interval(low=math.tanh(centre - half), high=math.tanh(centre + half))


def correlate(
    x: ArrayLike, y: ArrayLike, *, ranks: bool = False, names: Names = ("x", "y")
) -> Statistic:
    """Pearson's r of two equally long sequences of finite numbers, with Fisher's interval.

    Of their `ranks`, Spearman's rho, ties sharing their mean rank; the interval then has the
    variance (1 + rho^2 / 2) / (n - 3) of Bonett and Wright (2000). `names` are what `missing` calls
    the two. Raises ValueError where the lengths differ or a number is not finite."""
    x_n, y_n = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x_n.ndim != 1 or x_n.shape != y_n.shape:
        raise ValueError(
            f"a correlation needs two sequences of one length, got shapes {x_n.shape} and "
            f"{y_n.shape}"
        )
    if not (np.isfinite(x_n).all() and np.isfinite(y_n).all()):
        raise ValueError("a correlation needs finite numbers; leave out trials without a value")
    n = len(x_n)
    if n < 3:
        return Statistic(missing=f"a correlation needs at least 3 points, there {_are(n)}")
    constant = [name for name, values in zip(names, (x_n, y_n), strict=True) if np.ptp(values) == 0]
    if constant:
        return Statistic(missing=f"{' and '.join(constant)} had the same value at all {n} points")
    from scipy import stats  # takes longer to import than a command that only lists may

    result = (stats.spearmanr if ranks else stats.pearsonr)(x_n, y_n)
    value, p_value = float(result.statistic), float(result.pvalue)
    if 1 - abs(value) < 1e-12:
        return Statistic(
            value=float(round(value)),
            missing="the points lie on one line, which leaves no interval",
        )
    if n < 4:
        return Statistic(
            value=value,
            p_value=p_value,
            df=n - 2,
            missing=f"an interval needs 4 points, there {_are(n)}",
        )
    variance = (1 + value**2 / 2) / (n - 3) if ranks else None
    return Statistic(
        value=value,
        interval=fisher_interval(value, n, variance=variance),
        p_value=p_value,
        df=n - 2,
    )


def partial_correlation(
    x: ArrayLike, y: ArrayLike, controls: ArrayLike, *, names: Names = ("x", "y")
) -> Statistic:
    """Pearson's r of what is left of x and y once straight lines in the controls are taken away.

    `controls` has a row a point and a column a control. The interval is Fisher's with n - (number
    of controls) - 3 in place of n - 3, the p-value that of Student's t with n - (number of
    controls) - 2 degrees of freedom (Fisher 1924); columns that follow from the others and from a
    constant are no controls of their own."""
    x_n, y_n = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    controls_nk = np.asarray(controls, dtype=np.float64)
    if controls_nk.ndim != 2 or not len(x_n) == len(y_n) == len(controls_nk):
        raise ValueError(
            f"controls have a row a point, got {controls_nk.shape} for {len(x_n)} and {len(y_n)} "
            f"points"
        )
    centred_nk = controls_nk - controls_nk.mean(axis=0)
    taken = int(np.linalg.matrix_rank(centred_nk))
    if (points := len(x_n) - taken) < 3:
        return Statistic(missing=f"{len(x_n)} points are too few for {taken} controls")
    rest = []
    for name, values in zip(names, (x_n, y_n), strict=True):
        centred = values - values.mean()
        left = centred - centred_nk @ np.linalg.lstsq(centred_nk, centred, rcond=None)[0]
        if np.linalg.norm(left) <= 1e-9 * np.linalg.norm(centred):
            return Statistic(missing=f"the controls leave nothing of {name}")
        rest.append(left / np.linalg.norm(left))
    value = float(np.clip(rest[0] @ rest[1], -1, 1))
    if 1 - abs(value) < 1e-12:
        return Statistic(
            value=float(round(value)),
            missing="the points lie on one line, which leaves no interval",
        )
    df = points - 2
    t = value * math.sqrt(df / (1 - value**2))
    p_value = 2 * float(stdtr(df, -abs(t)))
    if points < 4:
        return Statistic(
            value=value, p_value=p_value, t=t, df=df, missing="too few points for an interval"
        )
    return Statistic(
        value=value, interval=fisher_interval(value, points), p_value=p_value, t=t, df=df
    )


def _are(n: int) -> str:
    return {0: "is none", 1: "is 1"}.get(n, f"are {n}")
