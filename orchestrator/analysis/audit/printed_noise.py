"""What the printed ranks of SM Tables 15 and 16 say of their matrix: one Press tolerance fits them all."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from search_spaces.published import rows
from trainables.measurements.quarter_circle import rank_with_noise, tolerance_of

TABLE = "sm_table15_16_press_noise"
SIZE, RANK = 10_000, 10
"""The rank that is printed for the most noise and for the least: of a full and of a noiseless matrix."""
FLOAT64_EPS = 2.0**-52
NOISELESS_SPREAD = 0.5
"""Where the law counts none of the noise, no draw does either."""
COUNT_SPREAD = 3.0
"""By how much a drawn matrix' count may differ from the law's expectation; draws of 40 to 1,000 rows stay below."""


@dataclass(frozen=True, kw_only=True)
class PrintedFit:
    """The tolerance that fits the most of the printed ranks, and what follows."""

    tolerance: float
    predicted: Mapping[float, float]
    """Noise variance -> the rank that the quarter-circle law gives with this tolerance."""
    misses: Mapping[float, float]
    """Noise variance -> printed less predicted rank."""

    def fits(self, variance: float) -> bool:
        """Whether the rank printed for this variance is what the law gives, as far as draws differ from it."""
        return abs(self.misses[variance]) <= self.spread(variance)

    def spread(self, variance: float) -> float:
        """By how much a printed rank may miss the law."""
        return COUNT_SPREAD if self.predicted[variance] - RANK > NOISELESS_SPREAD else NOISELESS_SPREAD

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
    """See `fit`, of the printed ranks."""
    return fit(printed_ranks())


def fit(printed: Mapping[float, int]) -> PrintedFit:
    """The tolerance in the middle of those that agree with the most ranks: a few wrong ones do not move it far.

    `printed` maps noise variances to Press ranks.
    """
    ranges = [_tolerances(rank, variance) for variance, rank in printed.items()]
    ends = sorted({end for both in ranges for end in both if 0 < end < math.inf})
    stretches = [math.sqrt(low * high) for low, high in pairwise(ends)]
    tolerance = max(stretches, key=lambda middle: sum(low <= middle <= high for low, high in ranges))
    predicted = {variance: _predict(tolerance, variance) for variance in printed}
    misses = {variance: rank - predicted[variance] for variance, rank in printed.items()}
    return PrintedFit(tolerance=tolerance, predicted=predicted, misses=misses)


def _tolerances(rank: float, variance: float) -> tuple[float, float]:
    """The least and the greatest tolerance with which the law gives a rank, as far as draws differ from it."""
    fewest, most = rank - COUNT_SPREAD, rank + COUNT_SPREAD
    least = tolerance_of(most, variance=variance, size=SIZE, rank=RANK) if RANK < most < SIZE else 0.0
    greatest = tolerance_of(fewest, variance=variance, size=SIZE, rank=RANK) if RANK < fewest < SIZE else math.inf
    return least, greatest


def _predict(tolerance: float, variance: float) -> float:
    return rank_with_noise(tolerance, variance=variance, size=SIZE, rank=RANK)
