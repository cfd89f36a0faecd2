"""How many singular values of Gaussian noise exceed a bound: the quarter-circle law.

An n x n matrix of independent Gaussians of variance c has singular values between 0 and 2 sqrt(c n); divided by
sqrt(c n) they are spread, for large n, with the density sqrt(4 - x^2) / pi on [0, 2] (Marchenko and Pastur 1967).
"""

from __future__ import annotations

import math

COUNT_SPREAD = 3.0
"""By how much a drawn matrix' count may differ from the law's expectation; draws of 40 to 1,000 rows stay below."""


def share_below(x: float) -> float:
    """The share of the singular values that are at most x sqrt(c n)."""
    x = min(max(x, 0.0), 2.0)
    return (x * math.sqrt(4 - x * x) / 2 + 2 * math.asin(x / 2)) / math.pi


def rank_with_noise(tolerance: float, *, variance: float, size: int, rank: int) -> float:
    """The expected number of singular values above `tolerance` of a `size` x `size` matrix of rank `rank` with noise.

    The matrix' own singular values count as above it. Beside so strong directions the others are those of the noise in
    the `size` - `rank` dimensions that are left.
    """
    noise_size = size - rank
    if variance == 0 or noise_size == 0:
        return float(rank)
    return rank + noise_size * (1 - share_below(tolerance / math.sqrt(variance * noise_size)))
