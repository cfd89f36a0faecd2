"""The percentile bootstrap over whole cells: what the values of one cell have in common stays together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from orchestrator.analysis.statistics.estimates import CONFIDENCE, Interval, Statistic

RESAMPLES = 9_999
SEED = 0
FEWEST_CELLS = 10
"""That an interval needs: a bootstrap over fewer promises too much."""


def draw_cells(cells: int) -> NDArray[np.int64]:
    """How often each of these cells is in each of `RESAMPLES` draws with replacement, the same at every call."""
    return np.random.default_rng(SEED).multinomial(cells, [1 / cells] * cells, size=RESAMPLES)


def percentile_statistic(value: float, drawn: NDArray[np.float64], *, cells: int) -> Statistic:
    """`value` with the interval between quantiles of what was drawn; draws that have no value are left out."""
    if cells < FEWEST_CELLS:
        return Statistic(value=value, missing=f"an interval needs {FEWEST_CELLS} settings, there are {cells}")
    low, high = np.quantile(drawn[np.isfinite(drawn)], [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Statistic(value=value, interval=Interval(low=float(low), high=float(high)))
