"""A confidence interval of a difference of means that does not take the values for normal."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from orchestrator.analysis.statistics.correlation import CONFIDENCE, Interval
from orchestrator.analysis.statistics.samples import Names, obstacle, summarise_sample

RESAMPLES = 9_999
FEWEST_RESAMPLES = 1_000
SEED = 0

Vector = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class BootstrapInterval:
    """The 95% interval of the mean of a minus the mean of b; None where `missing` says why in words."""

    interval: Interval | None = None
    resamples: int = RESAMPLES
    missing: str = ""


def bootstrap_interval(
    a_values: ArrayLike,
    b_values: ArrayLike,
    seed: int = SEED,
    *,
    resamples: int = RESAMPLES,
    names: Names = ("a", "b"),
) -> BootstrapInterval:
    """The bias-corrected and accelerated bootstrap (Efron 1987), each group drawn from on its own.

    The same for the same seed. It knows no values beyond those seen, so with few of them it is too narrow: for 10
    normal values of each group it covers the true difference about 92 times in 100 (measured in the tests).
    """
    if resamples < FEWEST_RESAMPLES:
        raise ValueError(f"ends of a 95% interval need at least {FEWEST_RESAMPLES:,} resamples, got {resamples}")
    a, b = summarise_sample(a_values), summarise_sample(b_values)
    if missing := obstacle(a, b, names=names):
        return BootstrapInterval(resamples=resamples, missing=missing)
    assert a.mean is not None and b.mean is not None
    a_n, b_n = np.asarray(a_values, dtype=np.float64) - a.mean, np.asarray(b_values, dtype=np.float64) - b.mean
    scale = max(np.abs(a_n).max(), np.abs(b_n).max())
    a_n, b_n = a_n / scale, b_n / scale
    rng = np.random.default_rng(seed)
    drawn = _resampled_means(a_n, resamples, rng) - _resampled_means(b_n, resamples, rng)
    centre = float(a_n.mean() - b_n.mean())
    levels = _bca_levels(_share_below(drawn, centre), _acceleration(a_n, b_n))
    low, high = (a.mean - b.mean + scale * float(np.quantile(drawn, level)) for level in levels)
    return BootstrapInterval(interval=Interval(low=float(low), high=float(high)), resamples=resamples)


def _resampled_means(values_n: Vector, resamples: int, rng: np.random.Generator) -> Vector:
    means: Vector = values_n[rng.integers(0, len(values_n), (resamples, len(values_n)))].mean(axis=1)
    return means


def _share_below(drawn: Vector, centre: float) -> float:
    """Ties count half: a sample drawn in another order is one, whatever its sum was rounded to."""
    tolerance = 1e-12
    return float((drawn < centre - tolerance).mean() + (np.abs(drawn - centre) <= tolerance).mean() / 2)


def _acceleration(a_n: Vector, b_n: Vector) -> float:
    """The jackknife's, for two groups (Davison and Hinkley 1997, chapter 5); the means of both are zero."""
    cubes = (a_n**3).sum() / len(a_n) ** 3 - (b_n**3).sum() / len(b_n) ** 3
    squares = (a_n**2).sum() / len(a_n) ** 2 + (b_n**2).sum() / len(b_n) ** 2
    return float(cubes / (6 * squares**1.5))


def _bca_levels(share_below: float, acceleration: float) -> tuple[float, float]:
    bias = float(ndtri(share_below))
    quantile = float(ndtri(0.5 + CONFIDENCE / 2))
    shifted = [bias + (bias + z) / (1 - acceleration * (bias + z)) for z in (-quantile, quantile)]
    assert all(math.isfinite(z) for z in shifted), f"{share_below} of the resampled differences lie below"
    low, high = (float(ndtr(z)) for z in shifted)
    return low, high
