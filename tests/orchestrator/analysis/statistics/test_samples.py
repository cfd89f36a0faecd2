"""t-tests and Holm's family against scipy's test of raw values and numbers worked by hand."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.statistics.samples import (
    SampleSummary,
    holm,
    students_t_range,
    summarise_sample,
    t_test,
)

pytestmark = pytest.mark.filterwarnings("error")

samples = st.lists(
    st.integers(-500, 500).map(lambda hundredths: hundredths / 100), min_size=2, max_size=12
)


def summary(n: int, mean: float | None, sd: float | None) -> SampleSummary:
    return SampleSummary(n=n, mean=mean, sd=sd)


@settings(deadline=None)
@given(samples, samples)
@pytest.mark.parametrize("equal_variances", [True, False])
def test_raw_values_agree_with_scipy(equal_variances: bool, a: list[float], b: list[float]) -> None:
    result = t_test(summarise_sample(a), summarise_sample(b), equal_variances=equal_variances)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        assert result.p_value is None and "spread" in result.missing
        return
    with warnings.catch_warnings():
        # scipy warns of lost digits where one of the groups is constant.
        warnings.simplefilter("ignore", RuntimeWarning)
        expected = scipy.stats.ttest_ind(a, b, equal_var=equal_variances)
    assert (result.t, result.df) == pytest.approx(
        (expected.statistic, expected.df), rel=1e-9, abs=1e-9
    )
    assert result.p_value == pytest.approx(expected.pvalue, rel=1e-7, abs=1e-12)
    ends = expected.confidence_interval(0.95)
    assert result.interval is not None and result.value == pytest.approx(
        np.mean(a) - np.mean(b), abs=1e-12
    )
    assert (result.interval.low, result.interval.high) == pytest.approx(
        (ends.low, ends.high), rel=1e-7, abs=1e-9
    )


def test_equal_values_have_no_spread_at_all_and_one_value_has_no_deviation() -> None:
    assert summarise_sample([0.1 + 0.2] * 7) == summary(7, 0.1 + 0.2, 0.0)
    assert summarise_sample([57.08]) == summary(1, 57.08, None)
    assert summarise_sample([]) == summary(0, None, None)


@pytest.mark.parametrize("bad", [[1.0, math.nan], [math.inf, 1.0], [[1.0], [2.0]]])
def test_what_is_no_sequence_of_finite_numbers_is_refused(bad: list[float]) -> None:
    with pytest.raises(ValueError, match="sequence of finite numbers"):
        summarise_sample(bad)


def test_the_range_holds_every_p_that_the_rounding_allows_and_reaches_its_ends() -> None:
    a, b, rounding = (57.08, 0.10), (57.02, 0.13), 0.005
    allowed = students_t_range(summary(10, *a), summary(10, *b), rounding)
    off = np.linspace(-rounding, rounding, 11)
    mean, sd_a, sd_b = np.meshgrid(2 * off, a[1] + off, b[1] + off)
    tried = scipy.stats.ttest_ind_from_stats(a[0] + mean, sd_a, 10, b[0], sd_b, 10).pvalue
    assert (tried.min(), tried.max()) == pytest.approx((allowed.low, allowed.high), rel=1e-6)


def test_means_that_may_be_the_same_allow_a_p_of_one_and_deviations_printed_as_zero_a_p_of_zero() -> (
    None
):
    result = students_t_range(summary(10, 1.01, 0.1), summary(10, 1.0, 0.1))
    assert 1.0 in result and 0.65 in result and 0.64 not in result
    allowed = students_t_range(summary(10, 1.0, 0.0), summary(10, 1.02, 0.0))
    assert allowed.low == 0.0 and 0 < allowed.high < 1


def test_holm_by_hand_without_what_was_not_tested() -> None:
    # Ordered 0.005, 0.01, 0.03, 0.04 times 4, 3, 2, 1; the last, 0.04, is raised to the one before
    # it.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([None, 0.02, None, 0.5]) == [None, pytest.approx(0.04), None, pytest.approx(0.5)]
    assert holm([]) == [] and holm([None]) == [None]


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_what_is_no_probability_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match=r"lies in \[0, 1\]"):
        holm([0.1, bad])
