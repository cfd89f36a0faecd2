"""Pearson, Spearman and partial correlation with 95% confidence intervals and p-values."""

from __future__ import annotations

import math
import sys

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from scipy.special import betaincc, ndtri, stdtr

from orchestrator.analysis.statistics.estimates import TAILS, Array, Interval, Names, Statistic
from orchestrator.words import too_few

NORMAL_QUANTILE = float(ndtri(TAILS[1]))
ON_LINE = "all points are on one line, so there is no interval"


def fisher_interval(value: float, variance: float) -> Interval:
    """Return the 95% interval tanh(artanh(r) -+ 1.96 sqrt(variance)) (Fisher 1921).

    `variance` is that of artanh(r): 1 / (n - 3) for Pearson's r of n pairs.
    """
    centre, half_width = math.atanh(value), NORMAL_QUANTILE * math.sqrt(variance)
    return Interval(math.tanh(centre - half_width), math.tanh(centre + half_width))


def student_statistic(value: float, df: int, interval: Interval) -> Statistic:
    """Return a correlation with its p-value by Student's t."""
    t = value * math.sqrt(df / max(1 - value**2, sys.float_info.min))
    p_value = 2 * float(stdtr(df, -abs(t)))
    return Statistic(value=value, interval=interval, p_value=p_value, t=t, df=df)


def correlate(
    x: ArrayLike, y: ArrayLike, *, ranks: bool = False, names: Names = ("x", "y")
) -> Statistic:
    """Return Pearson's r of two equally long sequences, with Fisher's interval.

    With `ranks`, return Spearman's rho; ties share their mean rank. The variance of artanh(rho) is
    (1 + rho^2 / 2) / (n - 3) (Bonett and Wright 2000). Raises ValueError for different lengths or
    numbers that are not finite.
    """
    x_n, y_n = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if x_n.shape != y_n.shape or not (np.isfinite(x_n) & np.isfinite(y_n)).all():
        raise ValueError("a correlation needs two equally long sequences of finite numbers")
    n = len(x_n)
    if missing := too_few(3, "points", n):
        return Statistic(missing=missing)
    constant_names = [
        name for name, values in zip(names, (x_n, y_n), strict=True) if np.ptp(values) == 0
    ]
    if constant_names:
        return Statistic(missing=f"{' and '.join(constant_names)} did not vary over the {n} points")
    # Do not use scipy.stats: it takes most of a second to import.
    if ranks:
        value = float(np.corrcoef([pd.Series(values).rank() for values in (x_n, y_n)])[0, 1])
    else:
        value = float(_direction(x_n) @ _direction(y_n))
    if is_on_line(value):
        return Statistic(value=float(round(value)), missing=ON_LINE)
    if ranks:
        t = value * math.sqrt((n - 2) / ((1 + value) * (1 - value)))
        p_value = 2 * float(stdtr(n - 2, -abs(t)))
    else:
        p_value = 2 * float(betaincc(n / 2 - 1, n / 2 - 1, (1 + abs(value)) / 2))
    if missing := too_few(4, "points", n):
        return Statistic(value=value, p_value=p_value, df=n - 2, missing=missing)
    variance = (1 + value**2 / 2 if ranks else 1) / (n - 3)
    interval = fisher_interval(value, variance)
    return Statistic(value=value, interval=interval, p_value=p_value, df=n - 2)


def _direction(values_n: Array) -> Array:
    centred_n = values_n - values_n.mean()
    largest = np.abs(centred_n).max()  # squares of large numbers overflow
    return centred_n / (largest * np.linalg.norm(centred_n / largest, axis=0))


def partial_correlation(
    x: ArrayLike, y: ArrayLike, controls: ArrayLike, *, names: Names = ("x", "y")
) -> Statistic:
    """Return Pearson's r of x and y, without interval, after removing linear fits on the controls.

    `controls` has a row per point and a column per control.
    """
    controls_nk = np.ascontiguousarray(controls, dtype=np.float64)
    centred_nk = controls_nk - controls_nk.mean(axis=0)
    rank, n = int(np.linalg.matrix_rank(centred_nk)), len(controls_nk)
    if n - rank < 3:
        return Statistic(missing=f"{n} points are too few for {rank} controls")
    residuals = []
    for name, values in zip(names, (x, y), strict=True):
        values_n = np.asarray(values, dtype=np.float64)
        centred_n = values_n - values_n.mean()
        residual_n = centred_n - centred_nk @ np.linalg.lstsq(centred_nk, centred_n, rcond=None)[0]
        if np.linalg.norm(residual_n) <= 1e-9 * np.linalg.norm(centred_n):
            return Statistic(missing=f"the controls explain {name} completely")
        residuals.append(residual_n / np.linalg.norm(residual_n))
    return Statistic(value=float(np.clip(residuals[0] @ residuals[1], -1, 1)))


def is_on_line(r: float) -> bool:
    """Return whether a correlation is -1 or 1 up to rounding."""
    return 1 - abs(r) < 1e-12
