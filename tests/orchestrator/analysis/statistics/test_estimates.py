"""Effects, margins and detectable distances against printed tables, statsmodels, an integral and
simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
import statsmodels.stats.weightstats
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.statistics.comparisons import compare
from orchestrator.analysis.statistics.estimates import Estimate, Statistic
from orchestrator.analysis.statistics.samples import (
    SampleSummary,
    pooled_sd,
    student_difference,
    summarise_sample,
    welch_difference,
)

pytestmark = pytest.mark.filterwarnings("error")


def hedges_g(a: SampleSummary, b: SampleSummary) -> Statistic:
    return student_difference(a, b).effect(pooled_sd(a, b))


def integrated_cdf(t: float, df: float, noncentrality: float) -> float:
    """P(Z + noncentrality <= t chi / sqrt(df)), over all chi."""

    def integrand(chi: float) -> float:
        return float(
            scipy.stats.norm.cdf(t * chi / math.sqrt(df) - noncentrality)
            * scipy.stats.chi.pdf(chi, df)
        )

    middle, width = math.sqrt(df), 12.0
    value, _ = scipy.integrate.quad(
        integrand, max(0.0, middle - width), middle + width, epsabs=1e-13, limit=500
    )
    return float(value)


def test_g_is_the_formula() -> None:
    a, b = SampleSummary(n=10, mean=57.03, sd=0.15), SampleSummary(n=8, mean=57.08, sd=0.1)
    pooled = math.sqrt((9 * 0.15**2 + 7 * 0.1**2) / 16)
    # Hedges (1981): J is about 1 - 3 / (4 df - 1).
    assert hedges_g(a, b).value == pytest.approx((1 - 3 / 63) * (57.03 - 57.08) / pooled, rel=3e-4)


@pytest.mark.parametrize("df", [2.0, 5.3, 18.0, 60.0])
@pytest.mark.parametrize("t", [-2.1, 0.0, 1.9, 25.0])
def test_the_effects_interval_solves_the_equation_of_the_noncentral_t(t: float, df: float) -> None:
    interval = Estimate(value=t, error=1.0, df=df).effect(sd=1.0).interval
    assert interval is not None
    assert integrated_cdf(t, df, interval.low) == pytest.approx(0.975, abs=1e-9)
    assert integrated_cdf(t, df, interval.high) == pytest.approx(0.025, abs=1e-9)


@pytest.mark.parametrize("t", [1e4, 1e9, -1e9])
def test_an_effect_beyond_what_can_be_computed_has_no_interval(t: float) -> None:
    effect = Estimate(value=t, error=1.0, df=18).effect(sd=1.0)
    assert effect.value is not None and math.copysign(1, effect.value) == math.copysign(1, t)
    assert (
        (effect.interval is None) == ("standard errors apart" in effect.missing) == (abs(t) > 1e4)
    )


def test_two_pairs_have_no_effect_size() -> None:
    """Hedges' correction is 0 at one degree of freedom."""
    effect = Estimate(value=2.0, error=1.0, df=1).effect(sd=1.0)
    assert effect.value is None and "degree of freedom" in effect.missing


@settings(deadline=None)
@given(
    st.lists(
        st.integers(-300, 300).map(lambda hundredths: hundredths / 100), min_size=2, max_size=12
    )
)
def test_at_the_smallest_margin_statsmodels_two_one_sided_tests_reach_005(a: list[float]) -> None:
    b = [0.3, 0.5, 0.1, 0.4]
    margin = welch_difference(summarise_sample(a), summarise_sample(b)).smallest_margin()
    reached = statsmodels.stats.weightstats.ttost_ind(
        np.array(a), np.array(b), -margin, margin, usevar="unequal"
    )
    assert reached[0] == pytest.approx(0.05, rel=1e-7)
    assert welch_difference(
        summarise_sample(b), summarise_sample(a)
    ).smallest_margin() == pytest.approx(margin)


def test_10_seeds_show_1_32_standard_deviations_and_64_show_half_a_one() -> None:
    # Cohen (1988), Table 2.4.1: d = 0.50 at 0.05 and power 0.80 needs n = 64 in each group. For n =
    # 10 the value that G*Power prints is 1.3249.
    def detectable(n: int) -> float:
        return student_difference(*[SampleSummary(n=n, mean=0, sd=1)] * 2).detectable()

    assert detectable(10) == pytest.approx(1.3249, abs=1e-4)
    assert 0.49 < detectable(64) <= 0.50 < detectable(63)


@pytest.mark.parametrize(
    ("sd_a", "n_a", "sd_b", "n_b"),
    [(0.19, 10, 0.10, 10), (0.1, 5, 0.4, 10), (0.3, 4, 0.3, 12), (0.3, 2, 0.3, 2)],
)
def test_a_simulated_test_finds_it_about_4_times_in_5(
    sd_a: float, n_a: int, sd_b: float, n_b: int
) -> None:
    groups = SampleSummary(n=n_a, mean=0, sd=sd_a), SampleSummary(n=n_b, mean=0, sd=sd_b)
    rng, runs = np.random.default_rng(13), 20_000
    a_SN = rng.normal(welch_difference(*groups).detectable(), sd_a, (runs, n_a))
    b_SN = rng.normal(0.0, sd_b, (runs, n_b))
    p_S = scipy.stats.ttest_ind(a_SN, b_SN, axis=1, equal_var=n_a == 2).pvalue
    assert (p_S < 0.05).mean() == pytest.approx(0.8, abs=0.02)


def test_a_comparison_has_each_of_them_from_the_test_that_it_belongs_to() -> None:
    a, b = [57.02, 57.11, 57.18, 56.95, 57.07], [54.6, 55.1, 54.9, 54.8, 55.0, 54.7]
    comparison, summaries = compare(a, b), (summarise_sample(a), summarise_sample(b))
    assert comparison.effect == hedges_g(*summaries)
    assert comparison.detectable.value == welch_difference(*summaries).detectable()
    assert comparison.smallest_margin.value == welch_difference(*summaries).smallest_margin()
    assert (comparison.unpaired.df, comparison.test.df) == (9, welch_difference(*summaries).df)
