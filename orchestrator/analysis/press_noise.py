"""Ranks of one matrix under noise and after round trips, with the quarter-circle law and the
printed values (AAAI 2021, SM Tables 14 to 16)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from orchestrator.analysis.tidy_frames import tidy
from search_spaces.published import rows

PRINTED_SIZE, PRINTED_RANK = 10_000, 10
"""Rows and columns of the supplement's matrix, and the singular values that it keeps."""
RANKS = ("press_rank", "effective_rank_1e-3", "effective_rank_1e-4", "effective_rank_1e-5")
COUNT_SPREAD = 3.0
"""Bound on |count of a drawn matrix - the law's expectation|; draws of 40 to 1,000 rows stay
below."""
FLOAT64_EPS = 2.0**-52
LAW_POINTS = 400


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
class PressNoiseNumbers:
    """The answer to a PressNoise request."""

    noise: pd.DataFrame
    """A row a matrix with noise, float64 and the most noise first: noise_variance (c: n^2 times
    the variance of an entry), precision, size (n), rank (without noise), press_rank_predicted (by
    the quarter-circle law), press_rank_predicted_10000 (for the printed matrix, if it has this c),
    each of `RANKS` counted and printed."""
    laws: pd.DataFrame
    """The law over c: precision, size, noise_variance, share (Press rank over size)."""
    trips: pd.DataFrame
    """A row a round trip, in order: round_trip, precision, size, rank (without noise), press_rank,
    printed_press_rank, error (sum of squared differences from the matrix before all trips),
    printed_error, largest_below_in_tolerances (the largest singular value that the Press rank does
    not count)."""


def press_noise_numbers(frame: pd.DataFrame) -> PressNoiseNumbers:
    """Read the metrics of the done trials."""
    measured: Sequence[Mapping[Any, Any]] = frame[frame["state"] == "done"].to_dict("records")
    noisy = sorted(
        (row for row in measured if not row["round_trips"]),
        key=lambda row: (row["precision"] != "float64", -row["noise_variance"]),
    )
    trips = (_trip(row, trip) for row in measured for trip in range(1, int(row["round_trips"]) + 1))
    return PressNoiseNumbers(
        noise=tidy(map(_noisy, noisy)),
        laws=tidy(_laws(noisy), ("precision", "size", "noise_variance", "share")),
        trips=tidy(trips),
    )


def _noisy(row: Mapping[Any, Any]) -> dict[str, Any]:
    variance, size = float(row["noise_variance"]), int(row["size"])
    is_printed = row["precision"] == "float64"
    printed = _printed("sm_table15_16_press_noise", "noise_c", variance) if is_printed else {}
    predicted = _predicted(row, variance)
    record = {
        "noise_variance": variance,
        "precision": row["precision"],
        "size": size,
        "rank": int(row["rank"]),
        "press_rank_predicted": predicted,
        "press_rank_predicted_10000": rank_at_printed_size(variance) if printed else None,
    }
    for name in RANKS:
        record[name] = int(row[f"noisy_{name}"])
        record[f"printed_{name}"] = int(printed[name]) if name in printed else None
    return record


def _predicted(row: Mapping[Any, Any], variance: float) -> float:
    """Return the Press rank of the row's matrix with noise of c = `variance`, by its tolerance."""
    tolerance, size, rank = (row[name] for name in ("noisy_press_tolerance", "size", "rank"))
    return rank_with_noise(float(tolerance), variance=variance, size=int(size), rank=int(rank))


def _laws(noisy: Sequence[Mapping[Any, Any]]) -> Iterator[dict[str, Any]]:
    for precision in dict.fromkeys(row["precision"] for row in noisy):
        of_precision = [row for row in noisy if row["precision"] == precision]
        with_noise = [row for row in of_precision if row["noise_variance"] > 0]
        if not with_noise:
            continue
        # All rows have one matrix, whose largest singular value and tolerance noise hardly moves.
        most, least = with_noise[0], with_noise[-1]
        size, ends = int(least["size"]), (least["noise_variance"] / 10, most["noise_variance"] * 10)
        for variance in map(float, np.geomspace(*ends, LAW_POINTS)):
            key = {"precision": precision, "noise_variance": variance}
            yield key | {"size": size, "share": _predicted(least, variance) / size}
            printed = rank_at_printed_size(variance) / PRINTED_SIZE
            yield key | {"size": PRINTED_SIZE, "share": printed}


def _trip(row: Mapping[Any, Any], trip: int) -> dict[str, Any]:
    prefix, printed = f"round_trip {trip} ", _printed("sm_table14_round_trips", "iteration", trip)
    return {
        "round_trip": trip,
        "precision": row["precision"],
        "size": int(row["size"]),
        "rank": int(row["rank"]),
        "press_rank": int(row[f"{prefix}press_rank"]),
        "printed_press_rank": int(printed["press_rank"]) if printed else None,
        "error": float(row[f"{prefix}error"]),
        "printed_error": printed["error_times_1e28"] * 1e-28 if printed else None,
        "largest_below_in_tolerances": float(row[f"{prefix}largest_below"]),
    }


def _printed(table: str, key: str, value: float) -> Mapping[str, float]:
    """The numbers of the line whose column `key` is `value`; empty if there is none."""
    lines = ({name: float(text) for name, text in row.items() if text} for row in rows(table))
    return next((line for line in lines if line[key] == value), {})
