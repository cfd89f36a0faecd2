"""Press ranks of a matrix with noise and after round trips (AAAI 2021, SM Tables 14 to 16).

A round trip computes a singular value decomposition and multiplies its factors.
"""

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
"""Number of rows (and columns) of the supplement's matrix, and its rank."""
RANKS = ("press_rank", "effective_rank_1e-3", "effective_rank_1e-4", "effective_rank_1e-5")
COUNT_SPREAD = 3.0
"""Largest |Press rank - expected rank| of drawn matrices with 40 to 1,000 rows."""
FLOAT64_EPS = 2.0**-52
LAW_POINTS = 400


def share_below(x: float) -> float:
    """Return the share of an n x n Gaussian matrix's singular values at or below x s sqrt(n).

    s is the standard deviation of an entry. For large n, singular values divided by s sqrt(n) have
    the density sqrt(4 - x^2) / pi on [0, 2], a quarter circle (Marchenko and Pastur 1967).
    """
    x = min(max(x, 0.0), 2.0)
    return (x * math.sqrt(4 - x * x) / 2 + 2 * math.asin(x / 2)) / math.pi


def rank_with_noise(tolerance: float, *, variance: float, size: int, rank: int) -> float:
    """Return the expected number of singular values of a noisy matrix above `tolerance`.

    The matrix is `size` x `size` and has rank `rank` without noise. These `rank` values all count.
    Noise, of variance `variance` / `size`^2 per entry, fills the other `size` - `rank` dimensions.
    """
    noise_size = size - rank
    if variance == 0 or noise_size == 0:
        return float(rank)
    return rank + noise_size * (
        1 - share_below(tolerance * size / math.sqrt(variance * noise_size))
    )


def rank_at_printed_size(variance: float, *, sigma_max: float = 1.0) -> float:
    """Return the expected Press rank of the supplement's noisy matrix in float64."""
    tolerance = 0.5 * math.sqrt(2 * PRINTED_SIZE + 1) * FLOAT64_EPS * sigma_max
    return rank_with_noise(tolerance, variance=variance, size=PRINTED_SIZE, rank=PRINTED_RANK)


@dataclass(frozen=True, kw_only=True)
class PressNoiseNumbers:
    """Answer to PressNoise."""

    noise: pd.DataFrame
    """One row per noisy matrix. Matrices in float64 come first; within a precision, the noise
    decreases. `noise_variance` is n^2 times the variance of an entry; `rank` is the rank without
    noise. The quarter-circle law predicts Press ranks for our size and the supplement's."""
    laws: pd.DataFrame
    """Predicted Press rank by noise variance, divided by the size (`share`)."""
    trips: pd.DataFrame
    """One row per round trip. `rank` is the original matrix's rank; `error` is the sum of squared
    differences from that matrix. `largest_below_in_tolerances` is the largest uncounted singular
    value divided by the tolerance."""


def press_noise_numbers(frame: pd.DataFrame) -> PressNoiseNumbers:
    """Return the done trials' ranks, next to predicted and printed ones."""
    trials: Sequence[Mapping[Any, Any]] = frame[frame["state"] == "done"].to_dict("records")
    noise_rows = sorted(
        (row for row in trials if not row["round_trips"]),
        key=lambda row: (row["precision"] != "float64", -row["noise_variance"]),
    )
    trips = (_trip(row, trip) for row in trials for trip in range(1, int(row["round_trips"]) + 1))
    return PressNoiseNumbers(
        noise=tidy(map(_noise_row, noise_rows)),
        laws=tidy(_laws(noise_rows), ("precision", "size", "noise_variance", "share")),
        trips=tidy(trips),
    )


def _noise_row(row: Mapping[Any, Any]) -> dict[str, Any]:
    variance, size = float(row["noise_variance"]), int(row["size"])
    is_printed = row["precision"] == "float64"
    line = _table_row("sm_table15_16_press_noise", "noise_c", variance) if is_printed else {}
    predicted_rank = _predicted_rank(row, variance)
    record = {
        "noise_variance": variance,
        "precision": row["precision"],
        "size": size,
        "rank": int(row["rank"]),
        "press_rank_predicted": predicted_rank,
        "press_rank_predicted_10000": rank_at_printed_size(variance) if line else None,
    }
    for name in RANKS:
        record[name] = int(row[f"noisy_{name}"])
        record[f"printed_{name}"] = int(line[name]) if name in line else None
    return record


def _predicted_rank(row: Mapping[Any, Any], variance: float) -> float:
    tolerance, size, rank = (row[name] for name in ("noisy_press_tolerance", "size", "rank"))
    return rank_with_noise(float(tolerance), variance=variance, size=int(size), rank=int(rank))


def _laws(trials: Sequence[Mapping[Any, Any]]) -> Iterator[dict[str, Any]]:
    for precision in dict.fromkeys(row["precision"] for row in trials):
        precision_trials = [row for row in trials if row["precision"] == precision]
        noise_rows = [row for row in precision_trials if row["noise_variance"] > 0]
        if not noise_rows:
            continue
        # All rows have one matrix. Noise hardly changes its largest singular value or tolerance.
        high, low = noise_rows[0], noise_rows[-1]
        size, ends = int(low["size"]), (low["noise_variance"] / 10, high["noise_variance"] * 10)
        for variance in map(float, np.geomspace(*ends, LAW_POINTS)):
            key = {"precision": precision, "noise_variance": variance}
            yield key | {"size": size, "share": _predicted_rank(low, variance) / size}
            printed_share = rank_at_printed_size(variance) / PRINTED_SIZE
            yield key | {"size": PRINTED_SIZE, "share": printed_share}


def _trip(row: Mapping[Any, Any], trip: int) -> dict[str, Any]:
    prefix, line = f"round_trip {trip} ", _table_row("sm_table14_round_trips", "iteration", trip)
    return {
        "round_trip": trip,
        "precision": row["precision"],
        "size": int(row["size"]),
        "rank": int(row["rank"]),
        "press_rank": int(row[f"{prefix}press_rank"]),
        "printed_press_rank": int(line["press_rank"]) if line else None,
        "error": float(row[f"{prefix}error"]),
        "printed_error": line["error_times_1e28"] * 1e-28 if line else None,
        "largest_below_in_tolerances": float(row[f"{prefix}largest_below"]),
    }


def _table_row(table: str, key: str, value: float) -> Mapping[str, float]:
    lines = ({name: float(text) for name, text in row.items() if text} for row in rows(table))
    return next((line for line in lines if line[key] == value), {})
