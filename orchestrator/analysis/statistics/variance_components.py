"""Variance components of cells that share seeds, and correlations from them.

The model is additive with crossed random effects: a cell effect, a seed effect common to all cells,
and a normal residual (Searle, Casella and McCulloch 1992, chapters 4 and 5). Points have the
columns group (the cell) and seed; cells may have different seeds. If no two cells share a seed,
values are nested in cells.

Legend: N values, C cells, S seeds; axis 3 is x^2, y^2, x y.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import fdtri

from orchestrator.analysis.statistics.correlation import (
    fisher_interval,
    is_on_line,
    student_statistic,
)
from orchestrator.analysis.statistics.estimates import TAILS, Array, Interval, Statistic
from orchestrator.analysis.statistics.jackknife import over_blocks
from orchestrator.analysis.tidy_frames import estimate_row

ROUNDING = 1e-12
"""Relative size below which sums and eigenvalues are zero."""


def variance_components(points: pd.DataFrame, metric: str) -> dict[str, Any]:
    """Return the components of a metric by Henderson's (1953) method 3, as a row.

    - variance_cells: variance of cell effects; zero if the estimate is negative.
    - variance_seed_in_one_cell: variance of a seed's effect on one cell.
    - variance_seed_in_all_cells: variance of a seed's effect common to all cells, which cancels
      between them; None if no two cells share a seed.
    - seed_share [95%]: seeds' share of the variance between single trials of different cells.
    - reliability [95%]: cells' share of the variance between cell means.

    Both intervals follow from the interval of the ratio of cell to residual variance (Harville and
    Fenech 1985), cut at zero. The ratio's interval is exact under the model for any seed effect and
    missing values.
    """
    model = _CrossedModel(points, metric, metric)
    cell = seed = residual = None
    share = reliability = Statistic(missing=model.missing or "the cells do not differ")
    if not model.missing:
        cell, seed, residual = (
            max(0.0, float(part[0])) for part in (model.cell_3, model.seed_3, model.residual_3)
        )
        if residual > 0:
            interval = model.ratio_interval()
            share = _share(cell / residual, interval, others=1.0, is_complement=True)
            others = float((1 / model.values_C).mean())
            reliability = _share(cell / residual, interval, others=others)
        elif cell > 0:
            words = "the seeds of a cell do not differ"
            if seed > 0:
                words = "the seeds differ by the same amount in every cell"
            share = Statistic(value=0.0, missing=words)
            reliability = Statistic(value=1.0)
    return {
        "metric": metric,
        "cells": model.cells,
        "trials": model.total,
        "variance_cells": cell,
        "variance_seed_in_one_cell": residual,
        "variance_seed_in_all_cells": seed if model.has_shared_seeds else None,
        **estimate_row("seed_share", share),
        **estimate_row("reliability", reliability),
        "missing": share.missing,
    }


def within_correlation(points: pd.DataFrame, x: str, y: str) -> Statistic:
    """Return the correlation of residuals of x and y, after removing cell and seed means jointly.

    The residuals have d degrees of freedom: N - C - S + 1 if every cell has every seed. The
    interval is Fisher's for d + 1 pairs; p is Student's t with d - 1.
    """
    model = _CrossedModel(points, x, y)
    if model.missing:
        return Statistic(missing=model.missing)
    xx, yy, xy = model.residual_3
    if min(xx, yy) == 0:
        return Statistic(missing="one of the metrics has no spread within cells")
    value = float(np.clip(xy / math.sqrt(xx * yy), -1, 1))
    if model.df < 3 or is_on_line(value):
        return Statistic(value=value, missing="the cells have too few values for an interval")
    return student_statistic(value, model.df - 1, fisher_interval(value, 1 / (model.df - 2)))


def between_correlation(points: pd.DataFrame, x: str, y: str, *, blocks: str) -> Statistic:
    """Return the correlation of cell effects on x and y, without the seeds' contribution.

    The interval is a jackknife over `blocks`. There is no value if a cell variance may be zero: the
    correlation would be noise.
    """
    if missing := _CrossedModel(points, x, y).missing:
        return Statistic(missing=missing)
    for metric in (x, y):
        row = variance_components(points, metric)
        low = row["reliability_low"]
        if row["reliability"] is None or (low is not None and low <= 0):
            return Statistic(missing="the variance between cells may be zero")

    def estimate(part: pd.DataFrame) -> Statistic:
        model = _CrossedModel(part, x, y)
        value = None if model.missing else _correlation(model.cell_3)
        return Statistic(value=value, missing=model.missing)

    return over_blocks(estimate, points, blocks)


class _CrossedModel:
    # cell_3, seed_3 and residual_3 are the (co)variances of cells, of seeds and of residuals.

    def __init__(self, points: pd.DataFrame, x: str, y: str) -> None:
        values_2N = np.array([points[x], points[y]], dtype=np.float64)
        cell_N, seed_N = (
            np.unique(points[name].to_numpy(), return_inverse=True)[1] for name in ("group", "seed")
        )
        total, cells_count = len(cell_N), len(set(cell_N))
        self.total, self.cells = total, cells_count
        self.has_shared_seeds = len(set(zip(cell_N, seed_N, strict=True))) > len(set(seed_N))
        if not self.has_shared_seeds:
            seed_N = np.zeros_like(seed_N)
        # Subtract the first value, then the mean: equal values become zero, and sums of squares
        # keep their precision.
        values_2N -= values_2N[:, :1]
        values_2N -= values_2N.mean(axis=1, keepdims=True) if total else 0.0
        counts_CS = np.zeros((cells_count, len(set(seed_N))))
        np.add.at(counts_CS, (cell_N, seed_N), 1)
        sums_2CS = np.zeros((2, *counts_CS.shape))
        for sums_CS, values_N in zip(sums_2CS, values_2N, strict=True):
            np.add.at(sums_CS, (cell_N, seed_N), values_N)
        values_C, seeds_S = counts_CS.sum(axis=1), counts_CS.sum(axis=0)
        sums_2C, sums_2S = sums_2CS.sum(axis=2), sums_2CS.sum(axis=1)
        within_2N = values_2N - (sums_2C / values_C)[:, cell_N]
        squares_3, within_3 = _products(values_2N).sum(axis=1), _products(within_2N).sum(axis=1)
        rounding_3 = ROUNDING * within_3 + ROUNDING**1.5 * squares_3
        # Normal equations of the seed effects, after cell means were subtracted.
        shares_CS = counts_CS / values_C[:, None]
        equations_SS = np.diag(seeds_S) - counts_CS.T @ shares_CS
        eigen, projection_2 = _diagonalise(equations_SS, sums_2S - sums_2C @ shares_CS, total)
        self.df = total - cells_count - len(eigen)
        explained_3 = (_products(projection_2) / eigen).sum(axis=1)
        self.residual_3 = _drop_rounding(within_3 - explained_3, rounding_3) / max(self.df, 1)
        # One seed's values have variance cell + residual, one cell's values seed + residual.
        within_seeds_3 = squares_3 - (_products(sums_2S) / seeds_S).sum(axis=1)
        cell_squares_3 = _drop_rounding(
            within_seeds_3 - (total - len(seeds_S)) * self.residual_3, ROUNDING * squares_3
        )
        seed_squares_3 = _drop_rounding(
            within_3 - (total - cells_count) * self.residual_3, rounding_3
        )
        pairs = total - float(((counts_CS**2).sum(axis=0) / seeds_S).sum())
        others = total - float(((counts_CS**2).sum(axis=1) / values_C).sum())
        self.cell_3, self.seed_3 = cell_squares_3 / max(pairs, 1), seed_squares_3 / max(others, 1)
        self.values_C, shares_SC = values_C, counts_CS / seeds_S
        self.equations_CC = np.diag(values_C) - shares_SC @ counts_CS.T
        self.effects_C = sums_2C[0] - shares_SC @ sums_2S[0]

    @property
    def missing(self) -> str:
        """Return why the components cannot be computed; empty if they can."""
        if self.cells < 2:
            return f"variance components need at least 2 cells but have {self.cells}"
        if self.total == self.cells:
            return "no cell has more than one value"
        return "" if self.df > 0 else "too few cells share several seeds"

    def ratio_interval(self) -> Interval:
        """Return the interval of the ratio of cell to residual variance, cut at zero."""
        from scipy.optimize import brentq  # slow to import

        eigen, effects = _diagonalise(self.equations_CC, self.effects_C, self.total)
        df = (len(eigen), self.df)

        # At the true ratio, the cells' weighted mean square (without seeds) has an F distribution.
        def mean_square(ratio: float) -> float:
            squares = float((effects**2 / (eigen + ratio * eigen**2)).sum())
            return squares / df[0] / float(self.residual_3[0])

        def ratio_at(probability: float) -> float:
            quantile = float(fdtri(*df, probability))
            if mean_square(0.0) <= quantile:
                return 0.0
            high = 1.0
            while mean_square(high) > quantile:
                high *= 2
            return float(brentq(lambda ratio: mean_square(ratio) - quantile, 0.0, high))

        return Interval(*map(ratio_at, reversed(TAILS)))


def _diagonalise(equations: Array, effects: Array, total: int) -> tuple[Array, Array]:
    eigen, vectors = np.linalg.eigh(equations)
    is_nonzero = eigen > ROUNDING * total
    return eigen[is_nonzero], (effects @ vectors)[..., is_nonzero]


def _products(values_2: Array) -> Array:
    return np.stack([values_2[0] ** 2, values_2[1] ** 2, values_2[0] * values_2[1]])


def _drop_rounding(parts_3: Array, rounding_3: Array) -> Array:
    xx, yy = parts_3[:2] * (np.abs(parts_3[:2]) > rounding_3[:2])
    return np.stack([xx, yy, np.where((xx == 0) | (yy == 0), 0.0, parts_3[2])])


def _correlation(parts_3: Array) -> float:
    xx, yy, xy = map(float, parts_3)
    return min(1.0, max(-1.0, xy / math.sqrt(xx * yy))) if min(xx, yy) > 0 else 0.0


def _share(
    ratio: float, interval: Interval, *, others: float, is_complement: bool = False
) -> Statistic:
    value, low, high = (part / (part + others) for part in (ratio, *interval))
    if is_complement:
        value, low, high = 1 - value, 1 - high, 1 - low
    return Statistic(value=value, interval=Interval(low, high))
