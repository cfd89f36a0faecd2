"""Values nested in cells, a value a seed: how much of their variance is the seed's, and two of them together.

The model is the one-way random-effects one: a value is its cell's plus the seed's, both normal, the seed's with the
same variance in every cell (Searle, Casella and McCulloch 1992, chapter 3). Cells may have different numbers of values.
Legend: N values, C cells.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtri, stdtr

from orchestrator.analysis.statistics.correlation import fisher_interval
from orchestrator.analysis.statistics.estimates import CONFIDENCE, Interval, Statistic

RESAMPLES = 9_999
SEED = 0


@dataclass(frozen=True, kw_only=True)
class VarianceComponents:
    """Of one metric over cells; None and words in `share.missing` where the values do not allow it."""

    cells: int
    values: int
    within: float | None
    """The seed's variance."""
    between: float | None
    """The cells' own variance; zero where the estimate is negative."""
    share: Statistic
    """within / (within + between): the share of a single value's variance that is the seed's."""
    reliability: Statistic
    """The share of the variance of the cells' means that is the cells' own."""


def variance_components(values: ArrayLike, cells: ArrayLike) -> VarianceComponents:
    """The components by the analysis of variance, with 95% intervals that are exact under the model.

    `values` are N finite numbers, `cells` the N labels of their cells. The interval of between / within is Wald's
    (1940), which needs no equal numbers of values, cut at zero; those of the two shares follow from it.
    """
    nested = _Nested(values, values, cells)
    if nested.missing:
        nothing = Statistic(missing=nested.missing)
        return VarianceComponents(
            cells=nested.cells, values=nested.total, within=None, between=None, share=nothing, reliability=nothing
        )
    within = float(nested.within()[0])
    between = max(0.0, float(nested.between()[0]))
    if within == between == 0:
        share = reliability = Statistic(missing="all values are the same")
    elif within == 0:
        words = "the values of a cell are the same in every cell, which leaves no interval"
        share = Statistic(value=0.0, missing=words)
        reliability = Statistic(value=1.0, missing=words)
    else:
        ratio = between / within
        interval = _wald_interval(nested, within)
        share = _of_ratio(ratio, interval, inverse=1.0, rising=False)
        reliability = _of_ratio(ratio, interval, inverse=float((1 / nested.counts_C).mean()), rising=True)
    return VarianceComponents(
        cells=nested.cells, values=nested.total, within=within, between=between, share=share, reliability=reliability
    )


def within_correlation(x: ArrayLike, y: ArrayLike, cells: ArrayLike) -> Statistic:
    """The correlation of what is left of x and y once each cell's mean is taken away: of values that differ in their
    seed alone.

    Its interval is Fisher's for N - C + 1 pairs, as the means take C degrees of freedom and not one.
    """
    nested = _Nested(x, y, cells)
    if nested.missing:
        return Statistic(missing=nested.missing)
    xx, yy, xy = nested.within()
    if min(xx, yy) <= 0:
        return Statistic(missing="one of the two has no spread within cells")
    value = float(np.clip(xy / math.sqrt(xx * yy), -1, 1))
    pairs = nested.total - nested.cells + 1
    if pairs < 4 or 1 - abs(value) < 1e-12:
        return Statistic(value=value, missing="too few values a cell for an interval")
    t = value * math.sqrt((pairs - 2) / (1 - value**2))
    p_value = 2 * float(stdtr(pairs - 2, -abs(t)))
    return Statistic(value=value, interval=fisher_interval(value, pairs), p_value=p_value, t=t, df=pairs - 2)


def between_correlation(x: ArrayLike, y: ArrayLike, cells: ArrayLike) -> Statistic:
    """The correlation of the cells' own parts of x and y: that of the cells' means without what their seeds add to it.

    From the components of variance and covariance, so that errors of x and y that come from the same seed may go
    together, which the usual correction for attenuation excludes. The interval is a percentile bootstrap over whole
    cells, a little too narrow for few of them (36 cells of three covered the truth about 93 times in 100; measured in
    the tests). There is none where the cells' own variance of either cannot be told from zero: it would be of noise.
    """
    nested = _Nested(x, y, cells)
    if nested.missing:
        return Statistic(missing=nested.missing)
    for values in (x, y):
        interval = variance_components(values, cells).reliability.interval
        if interval is None or interval.low <= 0:
            return Statistic(missing="the cells' own variance cannot be told from zero")
    from scipy import stats  # takes longer to import than a command that only lists may

    drawn = stats.bootstrap(
        (np.arange(nested.cells),),
        nested.correlation_of,
        n_resamples=RESAMPLES,
        batch=1000,
        confidence_level=CONFIDENCE,
        method="percentile",
        rng=np.random.default_rng(SEED),
    ).confidence_interval
    value = float(nested.correlation_of(np.arange(nested.cells)))
    return Statistic(value=value, interval=Interval(low=float(drawn.low), high=float(drawn.high)))


class _Nested:
    """Sums of squares and products of x and y within and between cells."""

    def __init__(self, x: ArrayLike, y: ArrayLike, cells: ArrayLike) -> None:
        values_2N = np.array([x, y], dtype=np.float64)
        labels = np.asarray(cells)
        if values_2N.shape != (2, len(labels)) or not np.isfinite(values_2N).all():
            raise ValueError("nested values are finite numbers, each with the label of its cell")
        _, place_N = np.unique(labels, return_inverse=True)
        self.counts_C = np.bincount(place_N).astype(np.float64)
        # About the mean of all: small numbers lose nothing in the sums of squares.
        values_2N -= values_2N.mean(axis=1, keepdims=True) if values_2N.size else 0.0
        self.means_2C = np.array([np.bincount(place_N, weights=row) for row in values_2N]) / self.counts_C
        rest_2N = values_2N - self.means_2C[:, place_N]
        products = (rest_2N[0] ** 2, rest_2N[1] ** 2, rest_2N[0] * rest_2N[1])
        self.squares_3C = np.array([np.bincount(place_N, weights=product) for product in products])

    @property
    def cells(self) -> int:
        return len(self.counts_C)

    @property
    def total(self) -> int:
        return int(self.counts_C.sum())

    @property
    def missing(self) -> str:
        """Why there are no components, in words."""
        if self.cells < 2:
            return f"at least 2 cells are needed, there {'is 1' if self.cells else 'is none'}"
        return "" if self.total > self.cells else "no cell has more than one value"

    def within(self) -> NDArray[np.float64]:
        """Mean squares of x and y and mean product within cells: the components of the seed."""
        rest: NDArray[np.float64] = self.squares_3C.sum(axis=1) / (self.total - self.cells)
        return rest

    def between(self) -> NDArray[np.float64]:
        """The components of the cells, two variances and a covariance; they may be negative."""
        return self._components(np.arange(self.cells))

    def correlation_of(self, drawn: NDArray[np.int64], axis: int = -1) -> NDArray[np.float64]:
        """The correlation of the cells' own parts, of each row of `drawn` cells; within [-1, 1], and zero where a
        variance is not positive."""
        assert axis == -1, "cells are drawn along the last axis"
        xx, yy, xy = self._components(drawn)
        positive = np.minimum(xx, yy) > 0
        product = np.where(positive, xx * yy, 1.0)
        return np.where(positive, np.clip(xy / np.sqrt(product), -1, 1), 0.0)

    def _components(self, drawn: NDArray[np.int64]) -> NDArray[np.float64]:
        counts = self.counts_C[drawn]
        means = self.means_2C[:, drawn]
        cells = drawn.shape[-1]
        total = counts.sum(axis=-1)
        away = means - ((counts * means).sum(axis=-1) / total)[..., None]
        products = (away[0] ** 2, away[1] ** 2, away[0] * away[1])
        between = np.array([(counts * product).sum(axis=-1) for product in products])
        # Cells of one value alone may be drawn: they say nothing of the seed.
        within = self.squares_3C[:, drawn].sum(axis=-1) / np.maximum(total - cells, 1)
        values_a_cell = (total - (counts**2).sum(axis=-1) / total) / (cells - 1)
        components: NDArray[np.float64] = (between / (cells - 1) - within) / values_a_cell
        return components


def _wald_interval(nested: _Nested, within: float) -> Interval:
    """Of between / within: where the weighted mean square of the cells' means is a quantile of F, exactly distributed
    so at the true ratio. Below zero it is cut."""
    from scipy.optimize import brentq  # takes longer to import than a command that only lists may

    counts, means = nested.counts_C, nested.means_2C[0]
    df = (nested.cells - 1, nested.total - nested.cells)

    def mean_square(ratio: float) -> float:
        weights = counts / (1 + counts * ratio)
        centre = (weights * means).sum() / weights.sum()
        return float((weights * (means - centre) ** 2).sum()) / df[0] / within

    def ratio_at(probability: float) -> float:
        quantile = float(fdtri(*df, probability))
        if mean_square(0.0) <= quantile:
            return 0.0
        high = 1.0
        while mean_square(high) > quantile:
            high *= 2
        return float(brentq(lambda ratio: mean_square(ratio) - quantile, 0.0, high))

    return Interval(low=ratio_at(0.5 + CONFIDENCE / 2), high=ratio_at(0.5 - CONFIDENCE / 2))


def _of_ratio(ratio: float, interval: Interval, *, inverse: float, rising: bool) -> Statistic:
    """ratio / (ratio + inverse), or what is missing of it to 1."""
    value, low, high = (part / (part + inverse) for part in (ratio, interval.low, interval.high))
    if rising:
        return Statistic(value=value, interval=Interval(low=low, high=high))
    return Statistic(value=1 - value, interval=Interval(low=1 - high, high=1 - low))
