"""Correlations against textbook numbers, formulas written out, and scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.statistics.correlation import fisher_interval, pearson, spearman
from trainables.measurements.mean_ranks import mean_ranks

ANSCOMBE_X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE_Y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]

pairs = st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=4, max_size=30)


def test_pearson_of_anscombes_first_set_is_the_published_0_816() -> None:
    found = pearson(ANSCOMBE_X, ANSCOMBE_Y)
    assert found.value == pytest.approx(0.81642, abs=1e-5)
    assert found.p_value == pytest.approx(0.00217, abs=1e-5)
    assert found.n == 11


def test_fisher_interval_is_the_formula() -> None:
    r, n = 0.48, 72
    z, half = 0.5 * math.log((1 + r) / (1 - r)), 1.959963984540054 / math.sqrt(n - 3)
    found = fisher_interval(r, n)
    for bound, expected in ((found.low, z - half), (found.high, z + half)):
        assert bound == pytest.approx((math.exp(2 * expected) - 1) / (math.exp(2 * expected) + 1), rel=1e-12)


def test_spearman_interval_has_the_variance_of_bonett_and_wright() -> None:
    found = spearman(ANSCOMBE_X, ANSCOMBE_Y)
    assert found.value is not None and found.interval is not None
    half = 1.959963984540054 * math.sqrt((1 + found.value**2 / 2) / (11 - 3))
    assert found.interval.low == pytest.approx(math.tanh(math.atanh(found.value) - half), rel=1e-12)
    assert found.interval.high == pytest.approx(math.tanh(math.atanh(found.value) + half), rel=1e-12)


def test_spearman_without_ties_is_the_rank_difference_formula() -> None:
    x, y = [1.0, 2.0, 3.0, 4.0, 5.0], [2.0, 1.0, 4.0, 3.0, 7.0]
    squared_differences = 1 + 1 + 1 + 1 + 0
    assert spearman(x, y).value == pytest.approx(1 - 6 * squared_differences / (5 * (25 - 1)))


@settings(deadline=None)
@given(pairs)
def test_pearson_agrees_with_the_sums_written_out(points: list[tuple[int, int]]) -> None:
    x, y = zip(*points, strict=True)
    n, found = len(points), pearson(x, y)
    above = n * sum(a * b for a, b in points) - sum(x) * sum(y)
    spread_x = n * sum(a * a for a in x) - sum(x) ** 2
    spread_y = n * sum(b * b for b in y) - sum(y) ** 2
    if spread_x * spread_y == 0:
        assert found.value is None and "same value" in found.missing
    else:
        assert found.value == pytest.approx(above / math.sqrt(spread_x * spread_y), abs=1e-12)


@settings(deadline=None)
@given(pairs)
def test_both_agree_with_scipy(points: list[tuple[int, int]]) -> None:
    x, y = zip(*points, strict=True)
    for found, reference in (
        (pearson(x, y), scipy.stats.pearsonr),
        (spearman(x, y), scipy.stats.spearmanr),
    ):
        if found.p_value is not None and found.value is not None and abs(found.value) < 1 - 1e-9:
            expected = reference(x, y)
            assert found.value == pytest.approx(expected.statistic, abs=1e-12)
            assert found.p_value == pytest.approx(expected.pvalue, abs=1e-9)


def test_pearson_interval_agrees_with_scipy() -> None:
    expected = scipy.stats.pearsonr(ANSCOMBE_X, ANSCOMBE_Y).confidence_interval(0.95)
    found = pearson(ANSCOMBE_X, ANSCOMBE_Y).interval
    assert found is not None
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-12)


def test_the_interval_covers_the_true_correlation_19_times_out_of_20() -> None:
    rng, covered, rho = np.random.default_rng(7), 0, 0.4
    for _ in range(2000):
        x_n = rng.normal(size=30)
        y_n = rho * x_n + math.sqrt(1 - rho**2) * rng.normal(size=30)
        interval = pearson(x_n, y_n).interval
        assert interval is not None
        covered += rho in interval
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


@settings(deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_ties_share_their_mean_rank(values: list[int]) -> None:
    expected = [
        sum(other < value for other in values) + (sum(other == value for other in values) + 1) / 2 for value in values
    ]
    assert list(mean_ranks(values)) == expected


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([], [], "at least 3 trials, there is none"),
        ([1.0], [2.0], "at least 3 trials, there is 1"),
        ([1.0, 2.0], [2.0, 1.0], "at least 3 trials, there are 2"),
        ([5.0, 5.0, 5.0, 5.0], [1.0, 2.0, 3.0, 4.0], "rank had the same value in all 4 trials"),
        ([5.0, 5.0, 5.0], [1.0, 1.0, 1.0], "rank and perplexity had the same value in all 3 trials"),
    ],
)
def test_what_cannot_be_computed_is_said_in_words(x: list[float], y: list[float], words: str) -> None:
    found = pearson(x, y, names=("rank", "perplexity"))
    assert found.value is None and found.interval is None and found.p_value is None
    assert words in found.missing


def test_three_points_have_a_correlation_but_no_interval() -> None:
    found = pearson([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    assert found.value == pytest.approx(0.5)
    assert found.interval is None and found.missing == "an interval needs 4 trials, there are 3"


def test_a_perfect_line_has_no_interval() -> None:
    found = pearson([0.0, 1.0, 2.0, 3.0], [0.0, 2.0, 4.0, 6.0])
    assert found.value == pytest.approx(1.0)
    assert found.p_value is None or found.p_value < 1e-6


@pytest.mark.parametrize("scale", [1e-320, 1e-160, 1e160, 1e307])
def test_extreme_magnitudes_neither_overflow_nor_vanish(scale: float) -> None:
    x, y = np.array([1.0, 2.0, 3.0, 5.0]), np.array([2.0, 1.0, 4.0, 3.0])
    assert pearson(x * scale, y).value == pytest.approx(pearson(x, y).value, abs=1e-3)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="finite"):
        pearson([1.0, 2.0, bad], [1.0, 2.0, 3.0])


def test_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        spearman([1.0, 2.0, 3.0], [1.0, 2.0])
