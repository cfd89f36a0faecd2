"""Equivalence and detectable differences against statsmodels, printed tables and simulated experiments."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.stats
import statsmodels.stats.power
import statsmodels.stats.weightstats
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.statistics.equivalence import (
    smallest_detectable_difference,
    smallest_equivalence_margin,
    tost,
)
from orchestrator.analysis.statistics.samples import SampleSummary, summarise_sample

pytestmark = pytest.mark.filterwarnings("error")

A = SampleSummary(n=10, mean=57.03, sd=0.15)
B = SampleSummary(n=10, mean=57.08, sd=0.1)

samples = st.lists(st.integers(-300, 300).map(lambda hundredths: hundredths / 100), min_size=2, max_size=12)


@settings(deadline=None)
@given(samples, samples, st.floats(0.01, 5.0))
def test_the_two_one_sided_tests_agree_with_statsmodels(a: list[float], b: list[float], margin: float) -> None:
    found = tost(summarise_sample(a), summarise_sample(b), margin)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        assert found.p_value is None and found.equivalent is None and "spread" in found.missing
        return
    expected = statsmodels.stats.weightstats.ttost_ind(np.array(a), np.array(b), -margin, margin, usevar="unequal")
    assert found.p_value == pytest.approx(expected[0], rel=1e-7, abs=1e-12)
    assert found.equivalent == (found.p_value is not None and found.p_value < 0.05)


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_the_90_percent_interval_lies_inside_the_margin_exactly_where_they_are_equivalent(factor: float) -> None:
    smallest = smallest_equivalence_margin(A, B).value
    assert smallest is not None
    found = tost(A, B, smallest * factor)
    assert found.interval is not None
    inside = -found.margin < found.interval.low and found.interval.high < found.margin
    assert inside == found.equivalent == (factor > 1)


def test_at_the_smallest_margin_p_is_the_threshold() -> None:
    smallest = smallest_equivalence_margin(A, B).value
    assert smallest is not None
    assert tost(A, B, smallest).p_value == pytest.approx(0.05, rel=1e-9)
    assert tost(B, A, smallest).p_value == pytest.approx(0.05, rel=1e-9)


def test_the_smallest_margin_is_the_farther_end_of_the_interval() -> None:
    interval = tost(A, B, 1.0).interval
    assert interval is not None
    assert smallest_equivalence_margin(A, B).value == pytest.approx(max(-interval.low, interval.high), rel=1e-12)


def test_groups_that_differ_by_the_margin_are_called_equivalent_1_time_in_20() -> None:
    rng, runs, wrong = np.random.default_rng(11), 4000, 0
    for _ in range(runs):
        a, b = summarise_sample(rng.normal(0.3, 0.1, 10)), summarise_sample(rng.normal(0.0, 0.2, 10))
        wrong += bool(tost(a, b, 0.3).equivalent)
    assert wrong / runs == pytest.approx(0.05, abs=0.012)


@pytest.mark.parametrize("n", [5, 10, 30, 200])
@pytest.mark.parametrize("power", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("alpha", [0.01, 0.05])
def test_the_detectable_difference_agrees_with_statsmodels(n: int, power: float, alpha: float) -> None:
    found = smallest_detectable_difference(0.13, n, 0.13, n, power, alpha)
    powers = statsmodels.stats.power.TTestIndPower()
    assert found.value is not None
    assert powers.power(found.value / 0.13, n, alpha) == pytest.approx(power, abs=1e-8)


def test_10_seeds_show_1_32_standard_deviations_and_64_show_half_a_one() -> None:
    # Cohen (1988), Table 2.4.1: d = 0.50 at 0.05 and power 0.80 needs n = 64 in each group. For n = 10 the value that
    # G*Power prints is 1.3249.
    assert smallest_detectable_difference(1.0, 10, 1.0, 10).value == pytest.approx(1.3249, abs=1e-4)
    half = smallest_detectable_difference(1.0, 64, 1.0, 64).value
    assert half is not None and 0.49 < half <= 0.50
    more = smallest_detectable_difference(1.0, 63, 1.0, 63).value
    assert more is not None and more > 0.50


def test_two_seeds_of_each_need_a_difference_that_a_simulated_student_test_finds_4_times_in_5() -> None:
    # statsmodels gives NaN here.
    found = smallest_detectable_difference(0.3, 2, 0.3, 2)
    assert found.value is not None
    rng, runs = np.random.default_rng(17), 20_000
    a_SN, b_SN = rng.normal(found.value, 0.3, (runs, 2)), rng.normal(0.0, 0.3, (runs, 2))
    assert (scipy.stats.ttest_ind(a_SN, b_SN, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.015)


@pytest.mark.parametrize(("sd_a", "n_a", "sd_b", "n_b"), [(0.19, 10, 0.10, 10), (0.1, 5, 0.4, 10), (0.3, 4, 0.3, 12)])
def test_a_simulated_welch_test_finds_it_about_4_times_in_5(sd_a: float, n_a: int, sd_b: float, n_b: int) -> None:
    found = smallest_detectable_difference(sd_a, n_a, sd_b, n_b)
    assert found.value is not None
    rng, runs = np.random.default_rng(13), 20_000
    a_SN, b_SN = rng.normal(found.value, sd_a, (runs, n_a)), rng.normal(0.0, sd_b, (runs, n_b))
    p_S = scipy.stats.ttest_ind(a_SN, b_SN, axis=1, equal_var=False).pvalue
    assert (p_S < 0.05).mean() == pytest.approx(0.8, abs=0.02)


@pytest.mark.parametrize(
    ("sd_a", "n_a", "sd_b", "n_b", "words"),
    [
        (None, 1, 0.1, 10, "there is 1 of softmax"),
        (None, 0, None, 0, "there is none of softmax and none of mos"),
        (0.0, 5, 0.0, 5, "neither softmax nor mos has any spread"),
        (0.1, 5, None, 5, "the standard deviation of mos is not known"),
    ],
)
def test_what_cannot_be_said_is_said_in_words(
    sd_a: float | None, n_a: int, sd_b: float | None, n_b: int, words: str
) -> None:
    names = ("softmax", "mos")
    a, b = (SampleSummary(n=n, mean=1.0 if n else None, sd=sd) for n, sd in ((n_a, sd_a), (n_b, sd_b)))
    detectable = smallest_detectable_difference(sd_a, n_a, sd_b, n_b, names=names)
    margin, equivalence = smallest_equivalence_margin(a, b, names=names), tost(a, b, 0.1, names=names)
    assert detectable.value is None and words in detectable.missing
    assert margin.value is None and words in margin.missing
    assert (equivalence.p_value, equivalence.equivalent, equivalence.interval) == (None, None, None)
    assert words in equivalence.missing


@pytest.mark.parametrize("margin", [0.0, -1.0, math.inf, math.nan])
def test_a_margin_that_is_not_positive_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="positive number"):
        tost(A, B, margin)


@pytest.mark.parametrize(("power", "alpha"), [(0.05, 0.05), (1.0, 0.05), (0.8, 0.0), (math.nan, 0.05)])
def test_a_power_that_no_difference_can_have_is_refused(power: float, alpha: float) -> None:
    with pytest.raises(ValueError, match="0 < alpha < power < 1"):
        smallest_detectable_difference(0.1, 10, 0.1, 10, power, alpha)
