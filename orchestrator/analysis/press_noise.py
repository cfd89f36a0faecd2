"""Press and effective ranks of one matrix under noise and round trips, beside the quarter-circle law and the printed
ones (AAAI 2021, SM Tables 14 to 16)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from search_spaces.published import rows
from trainables.measurements import rank_with_noise

if TYPE_CHECKING:
    import pandas as pd

EPSILONS = ("1e-3", "1e-4", "1e-5")
PRINTED_SIZE = 10_000
"""Rows and columns of the supplement's matrix: the rank that it prints for the most noise."""
RANKS = ("press_rank", *(f"effective_rank_{epsilon}" for epsilon in EPSILONS))


@dataclass(frozen=True, kw_only=True)
class NoiseLine:
    """One noisy matrix."""

    variance: float
    precision: str
    size: int
    rank: int
    """Without noise."""
    sigma_max: float
    counted: Mapping[str, int]
    """`RANKS` -> counted."""
    predicted: float
    """The Press rank by the quarter-circle law and the matrix' own tolerance."""
    printed: Mapping[str, int]
    """`RANKS` -> printed, where the supplement has this variance and the precision is float64."""

    @property
    def noise_share(self) -> float:
        """The noise's expected share of the sum of squares, at most: n^2 c over that and sigma_max^2."""
        energy = self.size**2 * self.variance
        return energy / (energy + self.sigma_max**2)


@dataclass(frozen=True, kw_only=True)
class TripLine:
    """A matrix after so many round trips."""

    trips: int
    """0 is the matrix itself."""
    counted: Mapping[str, int]
    largest_below: float
    """The largest singular value that the Press rank does not count, in units of its tolerance."""


@dataclass(frozen=True, kw_only=True)
class RoundTrips:
    """One matrix on its round trips."""

    variance: float
    """Of its noise; 0 without."""
    precision: str
    size: int
    rank: int
    """Without noise."""
    keeps_all: bool
    """Of the directions; else as many as the Press rank counts."""
    lines: tuple[TripLine, ...]

    def first_moved(self, name: str) -> TripLine | None:
        """The first line in which the rank of that name is not the matrix' own."""
        return next((line for line in self.lines if line.counted[name] != self.lines[0].counted[name]), None)

    @property
    def moved(self) -> bool:
        """Whether any rank did."""
        return any(self.first_moved(name) for name in RANKS)


@dataclass(frozen=True, kw_only=True)
class PressNoiseNumbers:
    """All lines, the most noise first, and all round trips."""

    noise: tuple[NoiseLine, ...]
    trips: tuple[RoundTrips, ...]


def press_noise_numbers(frame: pd.DataFrame) -> PressNoiseNumbers:
    """Read the metrics of the measurement press_noise of the done trials."""
    measured: Sequence[Mapping[Any, Any]] = []
    if "noisy_below_tolerance" in frame.columns:  # those of before it was measured are of another reading
        measured = frame[frame["noisy_below_tolerance"].notna()].to_dict("records")
    printed = {float(row["noise_c"]): row for row in rows("sm_table15_16_press_noise")}
    noise = [_noise_line(row, printed) for row in measured if not row["round_trips"]]
    return PressNoiseNumbers(
        noise=tuple(sorted(noise, key=lambda line: (line.precision != "float64", -line.variance))),
        trips=tuple(sorted((_round_trips(row) for row in measured if row["round_trips"]), key=_order)),
    )


def _noise_line(row: Mapping[Any, Any], printed: Mapping[float, Mapping[str, str]]) -> NoiseLine:
    variance, size, rank = float(row["noise_variance"]), int(row["size"]), int(row["rank"])
    beside = printed.get(variance, {}) if row["precision"] == "float64" else {}
    return NoiseLine(
        variance=variance,
        precision=row["precision"],
        size=size,
        rank=rank,
        sigma_max=float(row["noisy_sigma_max"]),
        counted={name: int(row[f"noisy_{name}"]) for name in RANKS},
        predicted=rank_with_noise(float(row["noisy_press_tolerance"]), variance=variance, size=size, rank=rank),
        printed={name: int(beside[name]) for name in RANKS if beside.get(name)},
    )


def _round_trips(row: Mapping[Any, Any]) -> RoundTrips:
    prefixes = ["noisy_", *(f"round_trip {trip} " for trip in range(1, int(row["round_trips"]) + 1))]
    return RoundTrips(
        variance=float(row["noise_variance"]),
        precision=row["precision"],
        size=int(row["size"]),
        rank=int(row["rank"]),
        keeps_all=row["kept"] == "all",
        lines=tuple(_trip_line(row, trip, prefix) for trip, prefix in enumerate(prefixes)),
    )


def _order(trips: RoundTrips) -> tuple[bool, bool, float]:
    return trips.keeps_all, trips.precision != "float64", -trips.variance


def _trip_line(row: Mapping[Any, Any], trip: int, prefix: str) -> TripLine:
    return TripLine(
        trips=trip,
        counted={name: int(row[prefix + name]) for name in RANKS},
        largest_below=float(row[f"{prefix}below_tolerance"]),
    )
