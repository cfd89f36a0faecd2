"""Correlations against textbook numbers, formulas written out, and a simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.analysis.statistics.correlation import correlate

ANSCOMBE_X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE_Y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]


def test_pearson_of_anscombes_first_set_is_the_published_0_816() -> None:
    result = correlate(ANSCOMBE_X, ANSCOMBE_Y)
    assert result.value == pytest.approx(0.81642, abs=1e-5)
    assert result.p_value == pytest.approx(0.00217, abs=1e-5)


def test_spearman_interval_has_the_variance_of_bonett_and_wright() -> None:
    result = correlate(ANSCOMBE_X, ANSCOMBE_Y, ranks=True)
    assert result.value is not None and result.interval is not None
    half = 1.959963984540054 * math.sqrt((1 + result.value**2 / 2) / (11 - 3))
    assert result.interval.low == pytest.approx(math.tanh(math.atanh(result.value) - half), rel=1e-12)
    assert result.interval.high == pytest.approx(math.tanh(math.atanh(result.value) + half), rel=1e-12)


def test_the_interval_covers_the_true_correlation_19_times_out_of_20() -> None:
    rng, covered, rho = np.random.default_rng(7), 0, 0.4
    for _ in range(2000):
        x_n = rng.normal(size=30)
        y_n = rho * x_n + math.sqrt(1 - rho**2) * rng.normal(size=30)
        interval = correlate(x_n, y_n).interval
        assert interval is not None
        covered += rho in interval
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([], [], "at least 3 trials, there is none"),
        ([1.0, 2.0], [2.0, 1.0], "at least 3 trials, there are 2"),
        ([5.0, 5.0, 5.0, 5.0], [1.0, 2.0, 3.0, 4.0], "rank had the same value in all 4 trials"),
        ([5.0, 5.0, 5.0], [1.0, 1.0, 1.0], "rank and perplexity had the same value in all 3 trials"),
    ],
)
def test_what_cannot_be_computed_is_said_in_words(x: list[float], y: list[float], words: str) -> None:
    result = correlate(x, y, names=("rank", "perplexity"))
    assert result.value is None and result.interval is None and result.p_value is None
    assert words in result.missing


def test_three_points_have_a_correlation_but_no_interval() -> None:
    result = correlate([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    assert result.value == pytest.approx(0.5)
    assert result.interval is None and result.missing == "an interval needs 4 trials, there are 3"


def test_a_perfect_line_has_no_interval() -> None:
    for ranks in (False, True):
        result = correlate([0.1, 1.3, 2.1, 7.0, 9.1], [-0.3, -3.9, -6.3, -21.0, -27.3], ranks=ranks)
        assert (result.value, result.interval, result.p_value) == (-1, None, None)
        assert result.missing == "the points lie on one line, which leaves no interval"


def test_numbers_that_are_not_finite_and_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        correlate([1.0, 2.0, math.nan], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="one length"):
        correlate([1.0, 2.0, 3.0], [1.0, 2.0])
