"""A confidence interval of a difference of means that does not take the values for normal."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from orchestrator.analysis.statistics.correlation import CONFIDENCE, Interval
from orchestrator.analysis.statistics.samples import Names, obstacle, summarise_sample

RESAMPLES = 9_999
SEED = 0


@dataclass(frozen=True, kw_only=True)
class BootstrapInterval:
    """The 95% interval of the mean of a minus the mean of b; None where `missing` says why in words."""

    interval: Interval | None = None
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

    The same for the same seed, as `scipy.stats.bootstrap` draws from a generator of its own. It knows no values beyond
    those seen, so with few of them it is too narrow: for 10 normal values of each group it covers the true difference
    about 92 times in 100 (measured in the tests).
    """
    from scipy import stats  # takes longer to import than a command that only lists may

    a, b = summarise_sample(a_values), summarise_sample(b_values)
    if missing := obstacle(a, b, names=names):
        return BootstrapInterval(missing=missing)
    assert a.mean is not None and b.mean is not None
    a_n, b_n = np.asarray(a_values, dtype=np.float64) - a.mean, np.asarray(b_values, dtype=np.float64) - b.mean
    scale = float(max(np.abs(a_n).max(), np.abs(b_n).max()))
    ends = stats.bootstrap(
        (a_n / scale, b_n / scale),
        _difference,
        n_resamples=resamples,
        confidence_level=CONFIDENCE,
        method="BCa",
        rng=np.random.default_rng(seed),
    ).confidence_interval
    low, high = (a.mean - b.mean + scale * float(end) for end in (ends.low, ends.high))
    return BootstrapInterval(interval=Interval(low=low, high=high))


def _difference(a: NDArray[np.float64], b: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Rounded, as a sample drawn in another order is the same one, whatever its sum was rounded to."""
    difference: NDArray[np.float64] = np.round(a.mean(axis=axis) - b.mean(axis=axis), 12)
    return difference
