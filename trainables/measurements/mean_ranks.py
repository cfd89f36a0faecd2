"""Ranks of numbers, for rank correlations."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def mean_ranks(values: ArrayLike) -> NDArray[np.float64]:
    """Ranks from 1, smallest first; equal values share the mean of the ranks they take up."""
    _, place, counts = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(counts) - (counts - 1) / 2)[place]
    return ranks
