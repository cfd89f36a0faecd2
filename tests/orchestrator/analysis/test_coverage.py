from __future__ import annotations

import math
from functools import partial

import pytest

from benchmarks.coverage import RESAMPLES, coverage
from orchestrator.analysis import curves_over_seeds


def test_intervals_cover_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """95% of intervals must contain the truth, within four binomial standard deviations.

    Intervals of the limit E may be wider: E's seed effect has only one or two degrees of freedom.
    """
    few_draws = partial(curves_over_seeds, resamples=RESAMPLES)
    monkeypatch.setattr("orchestrator.analysis.thresholds.curves_over_seeds", few_draws)
    for (name, noise), (share, count) in coverage(40).items():
        if noise == "by layer" or noise.startswith("smooth"):
            continue  # the intervals ignore this noise
        margin = 4 * math.sqrt(0.95 * 0.05 / count)
        assert share > 0.95 - margin, (name, noise, share, count)
        assert share < 0.95 + margin or name.endswith(" E"), (name, noise, share, count)
