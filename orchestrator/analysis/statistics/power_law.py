"""Power laws L(x) = E + a x^-b by least squares, fitted to data and to simulated data (draws).

Draws are as if from other seeds. Curves that share E and b differ by a shift along a logarithmic x
axis. For a given b, the best E and a have a closed form (variable projection: Golub and Pereyra
1973), so only b is searched.

Array axes: R sizes x, K curves, B draws (the first is the data), G exponents tried, P points (one
panel, group and x), N trials, S seeds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc, gammaincinv

from orchestrator.analysis.statistics.estimates import TAILS, Array, Interval, Statistic, indicators

# With only 4,999, the width of an interval varies by 1% between random seeds.
RESAMPLES = 19_999
SEED = 0
# A law of three parameters fits three points exactly.
FEWEST_SIZES = 4
EXPONENTS = Interval(0.01, 10.0)
"""Search range of the exponent b."""
GRID = np.geomspace(*EXPONENTS, 61)
# Each round tries REFINED exponents between the neighbours of the best exponent.
REFINED, ROUNDS = 7, 3
# Relative distance below which an estimate is at a bound.
AT_BOUND = 1e-4
MOST_MISSING = 0.05
"""Largest share of draws without a value that still allows an interval."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """A group's mean loss at each size, in the data and in draws as if from other seeds."""

    x_R: Array
    """Sizes, ascending."""
    count_R: Array
    mean_BR: Array
    """Row 0 has the observed means, further rows the draws (if any)."""
    variance: float | None
    """Residual variance within points, without seed effects; None if no point has two values."""
    df: float


@dataclass(frozen=True, kw_only=True, eq=False)
class Laws:
    """Laws L(x) = E + a x^-b fitted to the data and to each draw.

    `limit_B` is E, `exponent_B` is b, and `factor_KB` is a (0 if the values do not fall with x).
    `squares_B` is the residual sum of squares of the means, weighted by their number of values.
    """

    curves: Sequence[Curve]
    limit_B: Array
    exponent_B: Array
    factor_KB: Array
    squares_B: Array

    def at(self, x: float) -> Array:
        """Return L(x) of each draw, by the first curve's law."""
        values: Array = self.limit_B + self.factor_KB[0] * x**-self.exponent_B
        return values

    def inverse(self, loss_B: ArrayLike) -> Array:
        """Return the x at which the first curve's law has the values `loss_B`.

        Infinite if the law is always above the value, NaN if it does not fall.
        """
        excess_B = np.asarray(loss_B, dtype=np.float64) - self.limit_B
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            x_B: Array = (np.maximum(excess_B, 0) / self.factor_KB[0]) ** (-1 / self.exponent_B)
        x_B[self.factor_KB[0] == 0] = np.nan
        return x_B


def curves_over_seeds(
    trials: pd.DataFrame, *, resamples: int = RESAMPLES
) -> dict[tuple[Any, Any], Curve]:
    """Return the curve of each panel and group, with draws of its means as if from other seeds.

    `trials` has the columns panel, group, x > 0, loss and seed. A loss is the sum of its point's
    mean, a seed effect common to all points, and a residual. Each group has one residual variance.
    Residuals of groups at equal panel, x and seed are correlated, also in the draws: groups that
    share seeds are compared as pairs.

    Effects and residuals are drawn from Student's t with their estimates' degrees of freedom, so
    intervals of linear functions are exact for normal values. A group has no draws if none of its
    points has two values.

    Raises ValueError if a value is not finite or x <= 0.
    """
    x_N, y_N = (trials[name].to_numpy(dtype=np.float64) for name in ("x", "loss"))
    if not (np.isfinite(x_N) & (x_N > 0) & np.isfinite(y_N)).all():
        raise ValueError("a power law needs finite losses at finite x above zero")
    part_N, group_N, seed_N = (
        pd.factorize(trials[name], use_na_sentinel=False)[0] for name in ("panel", "group", "seed")
    )
    (part_P, group_P, x_P), point_N = _unique(part_N, group_N, x_N)
    group_P = group_P.astype(np.intp)
    site_P, cell_N = _unique(part_P, x_P)[1], _unique(part_N, x_N, seed_N)[1]
    count_P = np.bincount(point_N).astype(np.float64)
    mean_P = np.bincount(point_N, weights=y_N) / count_P
    share_PS, effect_S, effect_df, residual_N = _remove_seeds(
        y_N - mean_P[point_N], point_N, seed_N
    )
    residual_GJ = np.zeros((group_N.max() + 1, cell_N.max() + 1))
    np.add.at(residual_GJ, (group_N, cell_N), residual_N)
    size_G = np.bincount(group_N)
    df_G = size_G - np.bincount(group_P) - effect_df * size_G / len(x_N)
    squares_G = (residual_GJ**2).sum(axis=1)

    rng = np.random.default_rng(SEED)
    # Rows of the root have the inner products of the residuals' rows, so fewer normal numbers
    # give the same covariances.
    root_GK: Array = np.transpose(np.linalg.qr(residual_GJ.T, mode="r"))
    normal_QKB = rng.standard_normal((site_P.max() + 1, root_GK.shape[1], resamples))
    draw_PB = np.einsum("pk,pkb->pb", root_GK[group_P], normal_QKB[site_P])
    draw_PB /= np.sqrt(count_P)[:, None]
    quantile_B = rng.uniform(size=resamples)
    unique_df, index_G = np.unique(df_G, return_inverse=True)
    chi_DB = np.sqrt([2 * gammaincinv(max(df, 1) / 2, quantile_B) for df in unique_df])
    draw_PB /= chi_DB[index_G[group_P]]
    if effect_df:
        # Remove the part common to all points, because it is drawn with the seeds.
        draw_PB -= count_P @ draw_PB / count_P.sum()
        normal_SB = rng.standard_normal((len(effect_S), resamples)) * np.linalg.norm(effect_S)
        chi_B = np.sqrt(2 * gammaincinv(effect_df / 2, rng.uniform(size=resamples)))
        draw_PB += share_PS @ normal_SB / chi_B
    draw_PB = np.insert(draw_PB, 0, 0.0, axis=1)

    panels, groups = (trials[name].unique().tolist() for name in ("panel", "group"))
    curves = {}
    for part, group in zip(*_unique(part_P, group_P)[0].astype(np.intp), strict=True):
        of_curve, df = (part_P == part) & (group_P == group), df_G[group]
        draws = resamples if df > 0 else 0
        curves[panels[part], groups[group]] = Curve(
            x_R=x_P[of_curve],
            count_R=count_P[of_curve],
            mean_BR=(mean_P[of_curve, None] + draw_PB[of_curve, : draws + 1]).T,
            variance=squares_G[group] / df if df > 0 else None,
            df=df,
        )
    return curves


def _unique(*columns: NDArray[Any]) -> tuple[Array, NDArray[np.intp]]:
    rows, index = np.unique(np.stack(columns, axis=1), axis=0, return_inverse=True)
    return rows.T, index.ravel()


def _remove_seeds(
    residual_N: Array, point_N: NDArray[np.intp], seed_N: NDArray[np.intp]
) -> tuple[Array, Array, int, Array]:
    # Without degrees of freedom, seed effects are zero: for example, if each seed is at only one
    # point.
    indicator_NS = np.eye(seed_N.max() + 1)[seed_N]
    share_PS = np.zeros((point_N.max() + 1, indicator_NS.shape[1]))
    np.add.at(share_PS, point_N, indicator_NS)
    share_PS /= share_PS.sum(axis=1, keepdims=True)
    centred_NS = indicator_NS - share_PS[point_N]
    effect_S, _, rank, _ = np.linalg.lstsq(centred_NS, residual_N, rcond=1e-10)
    if len(residual_N) - len(share_PS) - rank < 1:
        return share_PS, np.zeros_like(effect_S), 0, residual_N
    return share_PS, effect_S - effect_S.mean(), int(rank), residual_N - centred_NS @ effect_S


def fit_laws(curves: Sequence[Curve]) -> Laws:
    """Fit laws in which all curves share E >= 0 and b in `EXPONENTS`; each curve has its own a > 0.

    If the values do not fall with x, every a is 0 and E is the mean.
    """
    rows = min(len(curve.mean_BR) for curve in curves)
    unit = math.exp(float(np.mean(np.log(np.concatenate([curve.x_R for curve in curves])))))
    points = [(np.log(curve.x_R / unit), curve.count_R, curve.mean_BR[:rows]) for curve in curves]
    draw_B = np.arange(rows)
    exponent_BG = np.broadcast_to(GRID, (rows, len(GRID)))
    best_B = _profile(GRID, points)[1].argmin(axis=1)
    for _ in range(ROUNDS):
        low_B = exponent_BG[draw_B, np.maximum(best_B - 1, 0)]
        high_B = exponent_BG[draw_B, np.minimum(best_B + 1, exponent_BG.shape[1] - 1)]
        exponent_BG = np.geomspace(low_B, high_B, REFINED, axis=1)
        squares_BG = _profile(exponent_BG, points)[1]
        best_B = squares_BG.argmin(axis=1)
    exponent_B = _vertex(exponent_BG, squares_BG, best_B)
    limit_B, squares_B, factor_KB = (
        values[..., 0] for values in _profile(exponent_B[:, None], points)
    )
    _, counts, means = zip(*points, strict=True)
    count_R, mean_BR = np.concatenate(counts), np.concatenate(means, axis=1)
    mean_B = mean_BR @ count_R / count_R.sum()
    falls_B = np.isfinite(squares_B)
    return Laws(
        curves=curves,
        limit_B=np.where(falls_B, limit_B, mean_B),
        exponent_B=exponent_B,
        factor_KB=np.where(falls_B, factor_KB * unit**exponent_B, 0.0),
        squares_B=np.where(falls_B, squares_B, (mean_BR - mean_B[:, None]) ** 2 @ count_R),
    )


def _vertex(exponent_BG: Array, squares_BG: Array, best_B: NDArray[np.intp]) -> Array:
    draw_B, middle_B = np.arange(len(best_B)), np.clip(best_B, 1, exponent_BG.shape[1] - 2)
    log_b, squares = (
        [values_BG[draw_B, middle_B + step] for step in (-1, 0, 1)]
        for values_BG in (np.log(exponent_BG), squares_BG)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        bend_B = squares[0] - 2 * squares[1] + squares[2]
        vertex_B = np.exp(log_b[1] + (log_b[2] - log_b[0]) / 4 * (squares[0] - squares[2]) / bend_B)
    inside_B = (best_B == middle_B) & (bend_B > 0) & np.isfinite(vertex_B)
    result_B: Array = np.where(inside_B, vertex_B, exponent_BG[draw_B, best_B])
    return result_B


def _profile(exponent: Array, points: Sequence[tuple[Array, ...]]) -> tuple[Array, Array, Array]:
    # `exponent` has shape G or, with exponents per draw, B x G. The sum of squares is infinite if
    # an a is not positive.
    sums, parabolas = [], []
    for log_R, count_R, y_BR in points:
        z_GR = np.exp(-exponent[..., None] * log_R)
        sz, szz = z_GR @ count_R, z_GR**2 @ count_R
        szy = (
            y_BR @ (z_GR * count_R).T
            if z_GR.ndim == 2
            else (z_GR @ (y_BR * count_R)[:, :, None])[..., 0]
        )
        sy, syy = (y_BR @ count_R)[:, None], (y_BR**2 @ count_R)[:, None]
        sums.append((szy, sz, szz))
        parabolas.append((count_R.sum() - sz**2 / szz, sy - szy * sz / szz, syy - szy**2 / szz))
    # With z = x^-b, the best a for a given E is (Szy - E Sz) / Szz. The sum of squares is then
    # bow E^2 - 2 slope E + offset.
    bow, slope, offset = (sum(terms) for terms in zip(*parabolas, strict=True))
    limit_BG: Array = np.maximum(slope / bow, 0.0)
    factor_KBG = np.stack([(szy - limit_BG * sz) / szz for szy, sz, szz in sums])
    squares_BG: Array = np.maximum(bow * limit_BG**2 - 2 * slope * limit_BG + offset, 0.0)
    is_rising = (factor_KBG <= 0).any(axis=0)
    return limit_BG, np.where(is_rising, np.inf, squares_BG), factor_KBG


def lack_of_fit(laws: Laws) -> float | None:
    """Return the p-value of an F-test (Fisher 1922) of the laws' residuals against seed noise.

    None if seeds do not vary, or with as many parameters as points.
    """
    points = sum(len(curve.x_R) for curve in laws.curves)
    return f_test(laws.curves, float(laws.squares_B[0]), points - 2 - len(laws.curves))


def f_test(curves: Sequence[Curve], squares: float, df: int) -> float | None:
    """Return the p-value of an F-test of `squares` / `df` against the variance between seeds.

    None if `df` or the variance is zero.
    """
    within_df = sum(curve.df for curve in curves)
    within_squares = sum(
        curve.variance * curve.df for curve in curves if curve.variance is not None
    )
    if within_squares <= 0 or df <= 0:
        return None
    return _f_p(squares, df, within_squares, within_df)


def _f_p(squares: float, df: int, within_squares: float, within_df: float) -> float:
    return float(fdtrc(df, within_df, max(squares, 0.0) / df / (within_squares / within_df)))


def seed_by_group_p(trials: pd.DataFrame) -> float | None:
    """Return the p-value of an F-test for seed effects that differ between groups, but not over x.

    `curves_over_seeds` ignores such effects; if they exist, its intervals are too narrow. None if
    no degrees of freedom are left.
    """
    y_N = trials["loss"].to_numpy(dtype=np.float64)
    points_NP, seeds_NS, cells_NC = (
        indicators(trials[names]) for names in (["group", "x"], ["seed"], ["group", "seed"])
    )
    (squares, rank), (residual, full_rank) = (
        _residual_squares(y_N, np.hstack([points_NP, effects])) for effects in (seeds_NS, cells_NC)
    )
    df, residual_df = full_rank - rank, len(y_N) - full_rank
    if df < 1 or residual_df < 1 or residual <= 1e-18 * float(y_N @ y_N):
        return None
    return _f_p(squares - residual, df, residual, residual_df)


def _residual_squares(y_N: Array, design_Nk: Array) -> tuple[float, int]:
    solution_k, _, rank, _ = np.linalg.lstsq(design_Nk, y_N, rcond=None)
    return float(np.sum((y_N - design_Nk @ solution_k) ** 2)), int(rank)


def over_draws(values_B: Array, *, null: float | None = None) -> Statistic:
    """Return the data's value with a 95% percentile interval, and a p-value of `null`.

    Interval ends may be infinite. NaN draws are left out. There is no interval without draws, or if
    over `MOST_MISSING` of them are NaN.
    """
    value, draw_B = float(values_B[0]), values_B[1:]
    if math.isnan(value):
        return Statistic(missing="the baseline's loss does not fall as x grows")
    if not len(draw_B):
        return Statistic(value=value, missing="no size has two seeds")
    sorted_B = np.sort(draw_B[~np.isnan(draw_B)])
    if len(sorted_B) < (1 - MOST_MISSING) * len(draw_B):
        missing = f"{1 - len(sorted_B) / len(draw_B):.0%} of the draws give no value"
        return Statistic(value=value, missing=missing)
    interval = Interval(*(float(sorted_B[round(tail * (len(sorted_B) - 1))]) for tail in TAILS))
    p_value = None
    if null is not None:
        tail = min(int((sorted_B <= null).sum()), int((sorted_B >= null).sum()))
        p_value = min(1.0, 2 * (tail + 1) / (len(sorted_B) + 1))
    return Statistic(value=value, interval=interval, p_value=p_value)
