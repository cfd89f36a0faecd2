"""Ranks of one matrix under noise and after round trips, with the quarter-circle law and the
printed values (AAAI 2021, SM Tables 14 to 16)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search_spaces.published import rows

if TYPE_CHECKING:
    import pandas as pd

PRINTED_SIZE, PRINTED_RANK = 10_000, 10
"""Rows and columns of the supplement's matrix, and the singular values that it keeps."""
RANKS = ("press_rank", "effective_rank_1e-3", "effective_rank_1e-4", "effective_rank_1e-5")
COUNT_SPREAD = 3.0
"""Bound on |count of a drawn matrix - the law's expectation|; draws of 40 to 1,000 rows stay
below."""
FLOAT64_EPS = 2.0**-52


def share_below(x: float) -> float:
    """The share of the singular values of n x n Gaussian noise of standard deviation s that are at
    most x s sqrt(n).

    Divided by s sqrt(n), they are spread for large n with the density sqrt(4 - x^2) / pi on [0, 2],
    a quarter of a circle (Marchenko and Pastur 1967)."""
    x = min(max(x, 0.0), 2.0)
    return (x * math.sqrt(4 - x * x) / 2 + 2 * math.asin(x / 2)) / math.pi


def rank_with_noise(tolerance: float, *, variance: float, size: int, rank: int) -> float:
    """The expected number of singular values above `tolerance` of a `size` x `size` matrix of rank
    `rank` with noise of variance `variance` / `size`^2.

    The matrix' own singular values count as above it, the others are those of the noise in `size` -
    `rank` dimensions."""
    noise_size = size - rank
    if variance == 0 or noise_size == 0:
        return float(rank)
    return rank + noise_size * (
        1 - share_below(tolerance * size / math.sqrt(variance * noise_size))
    )


def rank_at_printed_size(variance: float, *, sigma_max: float = 1.0) -> float:
    """The law for the supplement's matrix in float64, with its largest singular value."""
    tolerance = 0.5 * math.sqrt(2 * PRINTED_SIZE + 1) * FLOAT64_EPS * sigma_max
    return rank_with_noise(tolerance, variance=variance, size=PRINTED_SIZE, rank=PRINTED_RANK)


@dataclass(frozen=True, kw_only=True)
class NoisyMatrix:
    """One matrix with noise."""

    variance: float
    """c: n^2 times that of an entry of the noise, which is its expected sum of squares."""
    precision: str
    size: int
    rank: int
    """Without noise."""
    tolerance: float
    """Of the Press rank."""
    counted: Mapping[str, int]
    """`RANKS` -> counted."""
    printed: Mapping[str, int]
    """`RANKS` -> printed, where the supplement has this c and the precision is float64."""

    def predicted(self, variance: float) -> float:
        """The Press rank with noise of that c, by the quarter-circle law and the matrix' own
        tolerance."""
        return rank_with_noise(self.tolerance, variance=variance, size=self.size, rank=self.rank)


@dataclass(frozen=True, kw_only=True)
class RoundTrip:
    """One matrix after one of its round trips; the fields are the columns of the report's table."""

    round_trip: int
    precision: str
    size: int
    rank: int
    press_rank: int
    printed_press_rank: int | None
    error: float
    """Sum of squared differences from the matrix before all trips."""
    printed_error: float | None
    largest_below_in_tolerances: float
    """The largest singular value that the Press rank does not count."""


@dataclass(frozen=True, kw_only=True)
class PressNoiseNumbers:
    """The noisy matrices, float64 and the most noise first, and the round trips in their order."""

    noise: tuple[NoisyMatrix, ...]
    trips: tuple[RoundTrip, ...]


def press_noise_numbers(frame: pd.DataFrame) -> PressNoiseNumbers:
    """Read the metrics of the done trials.

    Trials from before schema version 2 are left out, because their noise has another variance. Only
    they have `kept`."""
    done: Sequence[Mapping[Any, Any]] = frame[frame["state"] == "done"].to_dict("records")
    measured = [row for row in done if not isinstance(row.get("kept"), str)]
    noise = [_noisy(row) for row in measured if not row["round_trips"]]
    return PressNoiseNumbers(
        noise=tuple(sorted(noise, key=lambda line: (line.precision != "float64", -line.variance))),
        trips=tuple(
            _trip(row, trip) for row in measured for trip in range(1, int(row["round_trips"]) + 1)
        ),
    )


def _noisy(row: Mapping[Any, Any]) -> NoisyMatrix:
    variance = float(row["noise_variance"])
    printed = (
        _printed("sm_table15_16_press_noise", "noise_c", variance)
        if row["precision"] == "float64"
        else {}
    )
    return NoisyMatrix(
        variance=variance,
        precision=row["precision"],
        size=int(row["size"]),
        rank=int(row["rank"]),
        tolerance=float(row["noisy_press_tolerance"]),
        counted={name: int(row[f"noisy_{name}"]) for name in RANKS},
        printed={name: int(printed[name]) for name in RANKS if name in printed},
    )


def _trip(row: Mapping[Any, Any], trip: int) -> RoundTrip:
    prefix, printed = f"round_trip {trip} ", _printed("sm_table14_round_trips", "iteration", trip)
    return RoundTrip(
        round_trip=trip,
        precision=row["precision"],
        size=int(row["size"]),
        rank=int(row["rank"]),
        press_rank=int(row[f"{prefix}press_rank"]),
        printed_press_rank=int(printed["press_rank"]) if printed else None,
        error=float(row[f"{prefix}error"]),
        printed_error=printed["error_times_1e28"] * 1e-28 if printed else None,
        largest_below_in_tolerances=float(row[f"{prefix}largest_below"]),
    )


def _printed(table: str, key: str, value: float) -> Mapping[str, float]:
    """The numbers of the line whose column `key` is `value`; empty if there is none."""
    lines = ({name: float(text) for name, text in row.items() if text} for row in rows(table))
    return next((line for line in lines if line[key] == value), {})
