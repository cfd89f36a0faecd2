"""Press and effective ranks of one matrix under noise and round trips, beside the quarter-circle law and the printed
ones (AAAI 2021, SM Tables 14 to 16)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search_spaces.published import rows

if TYPE_CHECKING:
    import pandas as pd

PRINTED_SIZE = 10_000
"""Rows and columns of the supplement's matrix: the rank that it prints for the most noise."""
RANKS = ("press_rank", "effective_rank_1e-3", "effective_rank_1e-4", "effective_rank_1e-5")
COUNT_SPREAD = 3.0
"""By how much a drawn matrix' count may differ from the law's expectation; draws of 40 to 1,000 rows stay below."""


def share_below(x: float) -> float:
    """The share of the singular values of Gaussian noise of variance c, n x n, that are at most x sqrt(c n).

    Divided by sqrt(c n), they are spread for large n with the density sqrt(4 - x^2) / pi on [0, 2], a quarter of a
    circle (Marchenko and Pastur 1967).
    """
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


@dataclass(frozen=True, kw_only=True)
class NoisyMatrix:
    """One matrix, with its ranks as it is and after round trips."""

    variance: float
    """Of its noise; 0 without."""
    precision: str
    size: int
    rank: int
    """Without noise."""
    keeps_all: bool
    """Of the directions on a round trip; else as many as the Press rank counts."""
    sigma_max: float
    tolerance: float
    """Of the Press rank."""
    printed: Mapping[str, int]
    """`RANKS` -> printed, where the supplement has this variance and the precision is float64."""
    counted: Sequence[Mapping[str, int]]
    """`RANKS` -> counted, first of the matrix itself, then after each round trip."""
    largest_below: Sequence[float]
    """The largest singular value that the Press rank does not count each time, in units of its tolerance."""

    @property
    def noise_share(self) -> float:
        """The noise's expected share of the sum of squares, at most: n^2 c over that and sigma_max^2."""
        energy = self.size**2 * self.variance
        return energy / (energy + self.sigma_max**2)

    def predicted(self, variance: float) -> float:
        """The Press rank with noise of that variance, by the quarter-circle law and the matrix' own tolerance."""
        return rank_with_noise(self.tolerance, variance=variance, size=self.size, rank=self.rank)

    def first_moved(self, name: str) -> int | None:
        """After how many round trips the rank of that name first is not the matrix' own."""
        return next((trip for trip, ranks in enumerate(self.counted) if ranks[name] != self.counted[0][name]), None)


@dataclass(frozen=True, kw_only=True)
class PressNoiseNumbers:
    """The matrices without round trips, float64 and the most noise first, and those with them."""

    noise: tuple[NoisyMatrix, ...]
    trips: tuple[NoisyMatrix, ...]


def press_noise_numbers(frame: pd.DataFrame) -> PressNoiseNumbers:
    """Read the metrics of the measurement press_noise of the done trials."""
    measured: Sequence[Mapping[Any, Any]] = []
    if "noisy_below_tolerance" in frame.columns:  # those of before it was measured are of another reading
        measured = frame[frame["noisy_below_tolerance"].notna()].to_dict("records")
    printed = {float(row["noise_c"]): row for row in rows("sm_table15_16_press_noise")}
    matrices = sorted(
        (_matrix(row, printed) for row in measured),
        key=lambda matrix: (matrix.keeps_all, matrix.precision != "float64", -matrix.variance),
    )
    return PressNoiseNumbers(
        noise=tuple(matrix for matrix in matrices if len(matrix.counted) == 1),
        trips=tuple(matrix for matrix in matrices if len(matrix.counted) > 1),
    )


def _matrix(row: Mapping[Any, Any], printed: Mapping[float, Mapping[str, str]]) -> NoisyMatrix:
    variance = float(row["noise_variance"])
    beside = printed.get(variance, {}) if row["precision"] == "float64" else {}
    prefixes = ["noisy_", *(f"round_trip {trip} " for trip in range(1, int(row["round_trips"]) + 1))]
    return NoisyMatrix(
        variance=variance,
        precision=row["precision"],
        size=int(row["size"]),
        rank=int(row["rank"]),
        keeps_all=row["kept"] == "all",
        sigma_max=float(row["noisy_sigma_max"]),
        tolerance=float(row["noisy_press_tolerance"]),
        printed={name: int(beside[name]) for name in RANKS if beside.get(name)},
        counted=[{name: int(row[prefix + name]) for name in RANKS} for prefix in prefixes],
        largest_below=[float(row[f"{prefix}below_tolerance"]) for prefix in prefixes],
    )
