"""Intervals of factors, laws and thresholds contain the truth of simulated studies, with and
without seed effects."""

from __future__ import annotations

import math

from benchmarks.coverage import coverage


def test_intervals_contain_the_truth_often_enough() -> None:
    """Four binomial standard deviations around 95%; E alone may be wider, as its seed effect has
    one or two degrees of freedom."""
    for (name, noise), (share, count) in coverage(40).items():
        if noise == "by layer" or noise.startswith("smooth"):
            continue  # which the intervals do not allow for
        margin = 4 * math.sqrt(0.95 * 0.05 / count)
        assert share > 0.95 - margin, (name, noise, share, count)
        assert share < 0.95 + margin or name.endswith(" E"), (name, noise, share, count)
