"""Which of two quantities says more of the next change of the other: correlations of changes over many short series.

Legend: N series, T steps, C cells (series that differ in nothing but their seed), P pairs of a step and the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orchestrator.analysis.statistics.estimates import Statistic
from orchestrator.analysis.statistics.whole_cells import draw_cells, percentile_statistic

FEWEST_PAIRS = 3
"""Of each series: with fewer, its mean takes nearly all."""
ROUNDING = 1e-9
"""Of a column, what is left of it where its means were all of it."""
X, Y, NEXT_X, NEXT_Y = range(4)


@dataclass(frozen=True, kw_only=True)
class LeadLag:
    """Correlations of the changes of x and y, each without its series' and its step's mean."""

    cells: int
    series: int
    pairs: int
    """Of a step and the next one, over all series."""
    together: Statistic
    """Of x and y in the same step."""
    leads: Statistic
    """Of x in a step and y in the next one, without what y of the first step says of it."""
    follows: Statistic
    """Of y in a step and x in the next one, without what x of the first step says of it."""
    difference: Statistic
    """`leads` less `follows`: positive where x says more of the next y than y of the next x."""


def lead_lag(x: ArrayLike, y: ArrayLike, cells: ArrayLike) -> LeadLag:
    """Lagged partial correlations of changes, after Granger (1969), with a percentile bootstrap over whole cells.

    `x` and `y` are N x T changes, NaN where a step does not count; `cells` are N labels. Series with fewer than three
    pairs of steps are left out. Taking away the means of so few steps draws `leads` and `follows` below zero, and by
    about as much where x and y persist alike and are measured alike: then their difference can be read. Of one path
    that is measured twice the noisier measurement looks like the one that follows, as its own past says too little of
    it; so does the one that persists longer where both share their shocks (measured in the tests).
    """
    x_NT, y_NT = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    counted_NT = np.isfinite(x_NT) & np.isfinite(y_NT)
    pairs_NT = counted_NT[:, :-1] & counted_NT[:, 1:]
    kept_N = pairs_NT.sum(axis=1) >= FEWEST_PAIRS
    series, step = np.nonzero(pairs_NT & kept_N[:, None])
    labels, cell_N = np.unique(np.asarray(cells)[kept_N], return_inverse=True)
    place_N = np.cumsum(kept_N) - 1
    sizes = {"cells": len(labels), "series": int(kept_N.sum()), "pairs": len(series)}
    if not len(series):
        nothing = Statistic(missing=f"no trial has {FEWEST_PAIRS} epochs that can be held against the next one")
        return LeadLag(**sizes, together=nothing, leads=nothing, follows=nothing, difference=nothing)
    values_P4 = np.stack([x_NT[series, step], y_NT[series, step], x_NT[series, step + 1], y_NT[series, step + 1]], 1)
    lagged_P4 = _without_means(values_P4, series, step)
    every = np.nonzero(counted_NT & kept_N[:, None])
    same_P2 = _without_means(np.stack([x_NT[every], y_NT[every]], 1), *every)
    sums_C44 = _sums(lagged_P4, cell_N[place_N[series]], len(labels))
    same_C22 = _sums(same_P2, cell_N[place_N[every[0]]], len(labels))
    drawn_BC = draw_cells(len(labels))

    def leads(sums_44: NDArray[np.float64]) -> NDArray[np.float64]:
        return _partial(sums_44, X, NEXT_Y, without=Y)

    def follows(sums_44: NDArray[np.float64]) -> NDArray[np.float64]:
        return _partial(sums_44, Y, NEXT_X, without=X)

    sums = sums_C44.sum(axis=0), np.tensordot(drawn_BC, sums_C44, axes=1)
    same = same_C22.sum(axis=0), np.tensordot(drawn_BC, same_C22, axes=1)
    return LeadLag(
        **sizes,
        together=_statistic(*(_correlation(part, X, Y) for part in same), cells=len(labels)),
        leads=_statistic(*map(leads, sums), cells=len(labels)),
        follows=_statistic(*map(follows, sums), cells=len(labels)),
        difference=_statistic(*(leads(part) - follows(part) for part in sums), cells=len(labels)),
    )


def _without_means(
    values_PK: NDArray[np.float64], series_P: NDArray[np.int64], step_P: NDArray[np.int64]
) -> NDArray[np.float64]:
    """What is left of each column once the means of series and of steps are taken away, the ones and the others in turn
    until nothing changes: least squares, without a column for each of them."""
    rest, size_K = values_PK.copy(), np.linalg.norm(values_PK, axis=0)
    changed = True
    while changed:
        before = rest.copy()
        for labels in (series_P, step_P):
            counts = np.maximum(np.bincount(labels), 1)
            for column in rest.T:
                column -= (np.bincount(labels, weights=column) / counts)[labels]
        changed = bool((np.linalg.norm(rest - before, axis=0) > 1e-13 * size_K).any())
    rest[:, np.linalg.norm(rest, axis=0) <= ROUNDING * size_K] = 0.0
    return rest


def _sums(rest_PK: NDArray[np.float64], cell_P: NDArray[np.int64], cells: int) -> NDArray[np.float64]:
    """Sums of products of the columns over each cell: C x K x K."""
    sums_CKK = np.zeros((cells, rest_PK.shape[1], rest_PK.shape[1]))
    np.add.at(sums_CKK, cell_P, rest_PK[:, :, None] * rest_PK[:, None, :])
    return sums_CKK


def _correlation(sums: NDArray[np.float64], i: int, j: int) -> NDArray[np.float64]:
    with np.errstate(divide="ignore", invalid="ignore"):
        r: NDArray[np.float64] = sums[..., i, j] / np.sqrt(sums[..., i, i] * sums[..., j, j])
    return r


def _partial(sums: NDArray[np.float64], i: int, j: int, *, without: int) -> NDArray[np.float64]:
    ij, ik, jk = _correlation(sums, i, j), _correlation(sums, i, without), _correlation(sums, j, without)
    with np.errstate(divide="ignore", invalid="ignore"):
        r: NDArray[np.float64] = (ij - ik * jk) / np.sqrt((1 - ik**2) * (1 - jk**2))
    return r


def _statistic(value: NDArray[np.float64], drawn_B: NDArray[np.float64], *, cells: int) -> Statistic:
    if not np.isfinite(value):
        return Statistic(missing="one of the two never changed otherwise than its mean")
    return percentile_statistic(float(value), drawn_B, cells=cells)
