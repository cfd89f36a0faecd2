"""What the printed ranks of SM Tables 15 and 16 say of their matrix: one Press tolerance fits them all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from search_spaces.published import rows
from trainables.quarter_circle import rank_with_noise, tolerance_of

TABLE = "sm_table15_16_press_noise"
SIZE, RANK = 10_000, 10
"""The rank that is printed for the most noise and for the least: of a full and of a noiseless matrix."""
FLOAT64_EPS = 2.0**-52
COUNT_SPREAD = 3.0
"""By how much a drawn matrix' count may differ from the law's expectation; draws of 40 to 1,000 rows stay below."""


@dataclass(frozen=True, kw_only=True)
class PrintedFit:
    """The tolerance that fits all printed ranks best, and what follows."""

    tolerance: float
    predicted: Mapping[float, float]
    """Noise variance -> the rank that the quarter-circle law gives with this tolerance."""
    misses: Mapping[float, float]
    """Noise variance -> printed less predicted rank."""

    @property
    def informative(self) -> tuple[float, ...]:
        """The noise variances whose rank says anything of the tolerance: one a tenth off would give another.

        The other ranks are those of a full and of a noiseless matrix, which any tolerance gives.
        """
        return tuple(
            variance
            for variance, predicted in self.predicted.items()
            if abs(_predict(1.1 * self.tolerance, variance) - predicted) > COUNT_SPREAD
        )

    @property
    def sigma_max(self) -> float:
        """The largest singular value of a 10,000 x 10,000 matrix that has this Press tolerance in float64."""
        return self.tolerance / (0.5 * math.sqrt(2 * SIZE + 1) * FLOAT64_EPS)

    @property
    def largest_miss(self) -> float:
        """In singular values."""
        return max(abs(miss) for miss in self.misses.values())

    @property
    def least_log_p_sigma_max(self) -> float:
        """What sigma_max of a log-P matrix of this size is at least: n ln n.

        A row's mean log-probability is at most that of the uniform distribution, -ln n (Jensen), and sigma_max is at
        least the matrix between the two unit vectors of equal entries, n times the mean of its entries.
        """
        return SIZE * math.log(SIZE)


def printed_ranks() -> Mapping[float, int]:
    """Noise variance -> the printed Press rank."""
    return {float(row["noise_c"]): int(row["press_rank"]) for row in rows(TABLE)}


@cache
def fit_printed() -> PrintedFit:
    """The tolerance whose largest miss over all printed ranks is the least."""
    printed = printed_ranks()
    bounds = [
        tolerance_of(rank, variance=variance, size=SIZE, rank=RANK)
        for variance, rank in printed.items()
        if RANK < rank < SIZE
    ]
    low, high = min(bounds), max(bounds)
    for _ in range(200):  # the largest of misses that each only grow away from their own zero has one valley
        third = (high - low) / 3
        if _largest(printed, low + third) < _largest(printed, high - third):
            high -= third
        else:
            low += third
    tolerance = (low + high) / 2
    predicted = {variance: _predict(tolerance, variance) for variance in printed}
    misses = {variance: rank - predicted[variance] for variance, rank in printed.items()}
    return PrintedFit(tolerance=tolerance, predicted=predicted, misses=misses)


def _predict(tolerance: float, variance: float) -> float:
    return rank_with_noise(tolerance, variance=variance, size=SIZE, rank=RANK)


def _largest(printed: Mapping[float, int], tolerance: float) -> float:
    return max(abs(rank - _predict(tolerance, variance)) for variance, rank in printed.items())
