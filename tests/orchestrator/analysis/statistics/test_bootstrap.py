"""The bootstrap interval against scipy's, and how often it covers the truth."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.statistics.bootstrap import bootstrap_interval

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize(("n_a", "n_b", "seed"), [(10, 10, 0), (6, 14, 1), (40, 9, 2)])
def test_it_is_scipys_for_the_same_random_numbers(n_a: int, n_b: int, seed: int) -> None:
    rng = np.random.default_rng(100 + seed)
    a, b = 57 + rng.exponential(0.2, n_a), rng.normal(57, 0.1, n_b)
    found = bootstrap_interval(a, b, seed)
    expected = scipy.stats.bootstrap(
        (a, b),
        lambda a, b, axis: a.mean(axis=axis) - b.mean(axis=axis),
        method="BCa",
        n_resamples=9_999,
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    assert found.interval is not None and found.missing == ""
    # A hair's breadth apart: samples redrawn in another order count as ties here, as either side of it there.
    assert (found.interval.low, found.interval.high) == pytest.approx((expected.low, expected.high), abs=1e-3)


def test_the_same_seed_gives_the_same_interval_and_another_one_nearly_so() -> None:
    rng = np.random.default_rng(4)
    a, b = rng.normal(57.0, 0.1, 10), rng.normal(57.1, 0.1, 10)
    first, again, other = (bootstrap_interval(a, b, seed).interval for seed in (7, 7, 8))
    assert first is not None and other is not None
    assert first == again != other
    assert (first.low, first.high) == pytest.approx((other.low, other.high), abs=0.01)


def test_ten_normal_seeds_cover_the_truth_about_92_times_in_100() -> None:
    rng, runs, covered = np.random.default_rng(21), 2000, 0
    for seed in range(runs):
        found = bootstrap_interval(rng.normal(0.3, 1, 10), rng.normal(0, 1, 10), seed, resamples=1_000)
        assert found.interval is not None
        covered += 0.3 in found.interval
    assert covered / runs == pytest.approx(0.92, abs=0.02)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=5),
    st.lists(st.floats(-1e9, 1e9), min_size=2, max_size=5),
)
def test_two_values_a_group_and_any_skew_give_an_interval_inside_the_data(a: list[float], b: list[float]) -> None:
    found = bootstrap_interval(a, b, resamples=1_000)
    if found.interval is None:
        assert "spread" in found.missing
        return
    slack = 1e-9 * max(map(abs, a + b))
    assert min(a) - max(b) - slack <= found.interval.low <= found.interval.high <= max(a) - min(b) + slack


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([], [1.0, 2.0], "there is none of softmax"),
        ([1.0], [1.0, 2.0], "there is 1 of softmax"),
        ([3.0, 3.0, 3.0], [3.1, 3.1], "neither softmax nor mos has any spread"),
    ],
)
def test_what_cannot_be_resampled_is_said_in_words(a: list[float], b: list[float], words: str) -> None:
    found = bootstrap_interval(a, b, names=("softmax", "mos"))
    assert found.interval is None and words in found.missing


def test_too_few_resamples_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1,000 resamples, got 99"):
        bootstrap_interval([1.0, 2.0], [1.0, 3.0], resamples=99)


def test_numbers_that_are_not_finite_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        bootstrap_interval([1.0, math.nan], [1.0, 3.0])
