"""Values of cells that have the same seeds: how much of their variance is the seed's, and two of
them together.

The model is the additive one with crossed random effects: a value is its cell's part, plus its
seed's, which is common to all cells, plus a rest, normal and of the same variance everywhere
(Searle, Casella and McCulloch 1992, chapters 4 and 5). Values may be missing. Where no two cells
share a seed, nothing is common to them: values are nested in cells. Legend: N values, C cells, S
seeds; a 3 stands for the squares of x, those of y and their products."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtri, stdtr

from orchestrator.analysis.statistics.correlation import fisher_interval
from orchestrator.analysis.statistics.estimates import CONFIDENCE, Interval, Statistic
from orchestrator.analysis.statistics.jackknife import over_blocks

ROUNDING = 1e-12
"""What sums and eigenvalues that should be zero are at most, as a share of the largest."""


@dataclass(frozen=True, kw_only=True)
class VarianceComponents:
    """Of one metric over cells; None and words in `share.missing` where the values do not allow
    it."""

    cells: int
    values: int
    own: float | None
    """The cells' own variance; zero where the estimate is negative."""
    common: float | None
    """That of what a seed does to all cells alike, which cancels between them; None where no two
    cells share one."""
    rest: float | None
    """That of what a seed does to one cell."""
    share: Statistic
    """rest / (own + rest): the seed's share of the variance between cells of one seed."""
    reliability: Statistic
    """The cells' own share of the variance of their means."""


def variance_components(
    values: ArrayLike, cells: ArrayLike, seeds: ArrayLike
) -> VarianceComponents:
    """The components by Henderson's (1953) method 3, with 95% intervals.

    `values` are N finite numbers, `cells` and `seeds` their labels. The interval of own / rest is
    Harville's and Fenech's (1985), exact under the model whatever the seeds have in common and
    whichever values are missing, cut at zero; those of the two shares follow from it."""
    crossed = _Crossed(values, values, cells, seeds)
    sizes = {"cells": crossed.cells, "values": crossed.total}
    if crossed.missing:
        nothing = Statistic(missing=crossed.missing)
        return VarianceComponents(
            **sizes, own=None, common=None, rest=None, share=nothing, reliability=nothing
        )
    own, common, rest = (
        max(0.0, float(part[0])) for part in (crossed.own, crossed.common, crossed.rest)
    )
    if own == rest == 0:
        share = reliability = Statistic(missing="the cells do not differ")
    elif rest == 0:
        words = (
            "the seeds differ by the same in every cell"
            if common
            else "the seeds of a cell do not differ"
        )
        share, reliability = (
            Statistic(value=0.0, missing=words),
            Statistic(value=1.0, missing=words),
        )
    else:
        interval = crossed.ratio_interval()
        share = _of_ratio(own / rest, interval, inverse=1.0, rising=False)
        reliability = _of_ratio(
            own / rest, interval, inverse=float((1 / crossed.values_C).mean()), rising=True
        )
    return VarianceComponents(
        **sizes,
        own=own,
        common=common if crossed.shared else None,
        rest=rest,
        share=share,
        reliability=reliability,
    )


def within_correlation(x: ArrayLike, y: ArrayLike, cells: ArrayLike, seeds: ArrayLike) -> Statistic:
    """The correlation of the rests of x and y, once the means of cells and of seeds are taken away,
    both at once.

    With d degrees of freedom left (N - C - S + 1 where every cell has every seed), its interval is
    Fisher's for d + 1 pairs and its p that of Student's t with d - 1."""
    crossed = _Crossed(x, y, cells, seeds)
    if crossed.missing:
        return Statistic(missing=crossed.missing)
    xx, yy, xy = crossed.rest
    if min(xx, yy) == 0:
        return Statistic(missing="one of the two has no spread within cells")
    value = float(np.clip(xy / math.sqrt(xx * yy), -1, 1))
    if crossed.df < 3 or 1 - abs(value) < 1e-12:
        return Statistic(value=value, missing="too few values a cell for an interval")
    df = crossed.df - 1
    t = value * math.sqrt(df / (1 - value**2))
    p_value = 2 * float(stdtr(df, -abs(t)))
    return Statistic(
        value=value, interval=fisher_interval(value, df + 2), p_value=p_value, t=t, df=df
    )


def between_correlation(
    x: ArrayLike,
    y: ArrayLike,
    cells: ArrayLike,
    seeds: ArrayLike,
    *,
    blocks: ArrayLike | None = None,
    name: str = "",
) -> Statistic:
    """The correlation of the cells' own parts of x and y: that of the cells' means without what
    their seeds add to it.

    From the components of variance and covariance, so that rests of x and y that come from the same
    seed may go together, which the usual correction for attenuation excludes. The interval is a
    jackknife over cells, or over `blocks` of them, called `name`. There is no correlation where the
    cells' own variance of either cannot be told from zero: it would be of noise."""
    crossed = _Crossed(x, y, cells, seeds)
    if crossed.missing:
        return Statistic(missing=crossed.missing)
    for values in (x, y):
        reliability = variance_components(values, cells, seeds).reliability
        if reliability.value is None or (
            reliability.interval is not None and reliability.interval.low <= 0
        ):
            return Statistic(missing="the cells' own variance cannot be told from zero")
    arrays = [np.asarray(values) for values in (x, y, cells, seeds)]

    def estimate(kept: NDArray[np.bool_]) -> Statistic:
        part = _Crossed(*(values[kept] for values in arrays))
        return (
            Statistic(missing=part.missing)
            if part.missing
            else Statistic(value=_correlation(part.own))
        )

    return over_blocks(estimate, cells if blocks is None else blocks, name=name or "the settings")


class _Crossed:
    """Sums over a table of cells and seeds, and the components that follow from them."""

    def __init__(self, x: ArrayLike, y: ArrayLike, cells: ArrayLike, seeds: ArrayLike) -> None:
        values_2N = np.array([x, y], dtype=np.float64)
        cell_N, seed_N = (
            np.unique(np.asarray(labels), return_inverse=True)[1] for labels in (cells, seeds)
        )
        if (
            not values_2N.shape[1:] == cell_N.shape == seed_N.shape
            or not np.isfinite(values_2N).all()
        ):
            raise ValueError(
                "values are finite numbers, each with the labels of its cell and its seed"
            )
        self.total, self.cells = len(cell_N), len(set(cell_N))
        self.shared = len(set(zip(cell_N, seed_N, strict=True))) > len(set(seed_N))
        """Whether two cells have a seed in common."""
        if not self.shared:
            seed_N = np.zeros_like(seed_N)
        # About the first value, so that equal ones are zero, then about the mean: sums of squares
        # lose nothing.
        values_2N -= values_2N[:, :1]
        values_2N -= values_2N.mean(axis=1, keepdims=True) if self.total else 0.0
        table = (self.cells, len(set(seed_N)))
        self.counts_CS, self.sums_2CS = np.zeros(table), np.zeros((2, *table))
        np.add.at(self.counts_CS, (cell_N, seed_N), 1)
        for sums_CS, value_N in zip(self.sums_2CS, values_2N, strict=True):
            np.add.at(sums_CS, (cell_N, seed_N), value_N)
        self.values_C = self.counts_CS.sum(axis=1)
        means_2C = self.sums_2CS.sum(axis=2) / self.values_C
        self.own, self.common, self.rest, self.df = self._components(
            values_2N, values_2N - means_2C[:, cell_N]
        )

    @property
    def missing(self) -> str:
        """Why there are no components, in words."""
        if self.cells < 2:
            return f"at least 2 cells are needed, there {'is 1' if self.cells else 'is none'}"
        if self.total == self.cells:
            return "no cell has more than one value"
        return "" if self.df > 0 else "too few cells have several seeds in common"

    def _components(
        self, values_2N: NDArray[np.float64], within_2N: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], int]:
        """Own, common and rest (two variances and a covariance each, which may be negative), and
        the degrees of freedom of the rest."""
        squares_3, within_3 = _products(values_2N).sum(axis=1), _products(within_2N).sum(axis=1)
        seeds_S, shares_CS = self.counts_CS.sum(axis=0), self.counts_CS / self.values_C[:, None]
        # The normal equations of the seeds on what the cells' means leave.
        eigen_S, vectors_SS = np.linalg.eigh(np.diag(seeds_S) - self.counts_CS.T @ shares_CS)
        solved_S = eigen_S > ROUNDING * self.total
        left_2S = self.sums_2CS.sum(axis=1) - self.sums_2CS.sum(axis=2) @ shares_CS
        explained_3 = (_products(left_2S @ vectors_SS)[:, solved_S] / eigen_S[solved_S]).sum(axis=1)
        df = self.total - self.cells - int(solved_S.sum())
        rounding_3 = ROUNDING * within_3 + ROUNDING**1.5 * squares_3
        rest_3 = _above(within_3 - explained_3, rounding_3) / max(df, 1)
        # Of values of one seed the variance is own + rest, of values of one cell common + rest.
        within_seeds_3 = squares_3 - (_products(self.sums_2CS.sum(axis=1)) / seeds_S).sum(axis=1)
        own_3 = _above(within_seeds_3 - (self.total - len(seeds_S)) * rest_3, ROUNDING * squares_3)
        common_3 = _above(within_3 - (self.total - self.cells) * rest_3, rounding_3)
        pairs = self.total - float(((self.counts_CS**2).sum(axis=0) / seeds_S).sum())
        others = self.total - float(((self.counts_CS**2).sum(axis=1) / self.values_C).sum())
        return own_3 / max(pairs, 1), common_3 / max(others, 1), rest_3, df

    def ratio_interval(self) -> Interval:
        """Of own / rest: where the weighted mean square of the cells, seeds taken away, is a
        quantile of F, as which it is distributed at the true ratio. Below zero it is cut."""
        from scipy.optimize import (
            brentq,
        )  # takes longer to import than a command that only lists may

        seeds_S = self.counts_CS.sum(axis=0)
        equations_CC = np.diag(self.values_C) - (self.counts_CS / seeds_S) @ self.counts_CS.T
        effects_C = self.sums_2CS[0].sum(axis=1) - (self.counts_CS / seeds_S) @ self.sums_2CS[
            0
        ].sum(axis=0)
        eigen_C, vectors_CC = np.linalg.eigh(equations_CC)
        solved_C = eigen_C > ROUNDING * self.total
        eigen, squares = eigen_C[solved_C], (effects_C @ vectors_CC)[solved_C] ** 2
        df = (len(eigen), self.df)

        def mean_square(ratio: float) -> float:
            return float((squares / (eigen + ratio * eigen**2)).sum()) / df[0] / float(self.rest[0])

        def ratio_at(probability: float) -> float:
            quantile = float(fdtri(*df, probability))
            if mean_square(0.0) <= quantile:
                return 0.0
            high = 1.0
            while mean_square(high) > quantile:
                high *= 2
            return float(brentq(lambda ratio: mean_square(ratio) - quantile, 0.0, high))

        return Interval(low=ratio_at(0.5 + CONFIDENCE / 2), high=ratio_at(0.5 - CONFIDENCE / 2))


def _products(values_2: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.stack([values_2[0] ** 2, values_2[1] ** 2, values_2[0] * values_2[1]])


def _above(parts_3: NDArray[np.float64], rounding_3: NDArray[np.float64]) -> NDArray[np.float64]:
    """Zero where rounding may have made them: a variance, and the covariance with it."""
    xx, yy = parts_3[:2] * (np.abs(parts_3[:2]) > rounding_3[:2])
    return np.stack([xx, yy, np.where((xx == 0) | (yy == 0), 0.0, parts_3[2])])


def _correlation(parts_3: NDArray[np.float64]) -> float:
    """Within [-1, 1]; zero where a variance is not positive."""
    xx, yy, xy = map(float, parts_3)
    return min(1.0, max(-1.0, xy / math.sqrt(xx * yy))) if min(xx, yy) > 0 else 0.0


def _of_ratio(ratio: float, interval: Interval, *, inverse: float, rising: bool) -> Statistic:
    """ratio / (ratio + inverse), or what is missing of it to 1."""
    value, low, high = (part / (part + inverse) for part in (ratio, interval.low, interval.high))
    if rising:
        return Statistic(value=value, interval=Interval(low=low, high=high))
    return Statistic(value=1 - value, interval=Interval(low=1 - high, high=1 - low))
