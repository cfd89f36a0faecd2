"""Hedges' g against tables, formulas, an integral and its own promise of coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.analysis.statistics.effect_size import hedges_g, small_sample_correction
from orchestrator.analysis.statistics.noncentral_t import noncentral_t_cdf, noncentrality_at
from orchestrator.analysis.statistics.samples import SampleSummary, summarise_sample
from orchestrator.analysis.statistics.significance import students_t

pytestmark = pytest.mark.filterwarnings("error")

spreads = st.floats(0.05, 5.0)


def integrated_cdf(t: float, df: float, noncentrality: float) -> float:
    """P(Z + noncentrality <= t chi / sqrt(df)), over all chi."""

    def integrand(chi: float) -> float:
        return float(scipy.stats.norm.cdf(t * chi / math.sqrt(df) - noncentrality) * scipy.stats.chi.pdf(chi, df))

    middle, width = math.sqrt(df), 12.0
    value, _ = scipy.integrate.quad(integrand, max(0.0, middle - width), middle + width, epsabs=1e-13, limit=500)
    return float(value)


@pytest.mark.parametrize(
    ("df", "expected"),
    # J written out: Gamma(n) and Gamma(n + 1/2) = (2n)! sqrt(pi) / (4^n n!).
    [
        (2, 1 / math.sqrt(math.pi)),
        (4, 1 / (math.sqrt(2) * math.sqrt(math.pi) / 2)),
        (18, math.factorial(8) / (3 * math.factorial(16) * math.sqrt(math.pi) / (4**8 * math.factorial(8)))),
    ],
)
def test_the_small_sample_correction_is_the_gamma_functions(df: int, expected: float) -> None:
    assert small_sample_correction(df) == pytest.approx(expected, rel=1e-12)


def test_the_correction_is_close_to_the_approximation_and_ends_at_one() -> None:
    # Hedges (1981): J is about 1 - 3 / (4 df - 1).
    assert small_sample_correction(18) == pytest.approx(1 - 3 / (4 * 18 - 1), abs=2e-4)
    assert small_sample_correction(1e6) == pytest.approx(1.0, abs=1e-6)


def test_g_is_the_formula() -> None:
    a, b = SampleSummary(n=10, mean=57.03, sd=0.15), SampleSummary(n=8, mean=57.08, sd=0.1)
    pooled = math.sqrt((9 * 0.15**2 + 7 * 0.1**2) / 16)
    expected = small_sample_correction(16) * (57.03 - 57.08) / pooled
    assert hedges_g(a, b).g == pytest.approx(expected, rel=1e-9)


def test_g_is_unbiased_where_cohens_d_is_not() -> None:
    rng, true = np.random.default_rng(3), 1.0
    a_SN, b_SN = rng.normal(true, 1.0, (20_000, 4)), rng.normal(0.0, 1.0, (20_000, 4))
    pooled_S = np.sqrt((a_SN.var(axis=1, ddof=1) + b_SN.var(axis=1, ddof=1)) / 2)
    d = float(((a_SN.mean(axis=1) - b_SN.mean(axis=1)) / pooled_S).mean())
    assert d > 1.1
    assert d * small_sample_correction(6) == pytest.approx(true, abs=0.03)


@settings(deadline=None)
@given(st.floats(-4, 4), spreads, spreads, st.integers(2, 15), st.integers(2, 15))
def test_the_interval_leaves_out_zero_exactly_where_students_test_is_significant(
    difference: float, sd_a: float, sd_b: float, n_a: int, n_b: int
) -> None:
    a, b = SampleSummary(n=n_a, mean=difference, sd=sd_a), SampleSummary(n=n_b, mean=0.0, sd=sd_b)
    found, test = hedges_g(a, b), students_t(a, b)
    assert found.interval is not None and found.g is not None and test.p_value is not None
    assert found.g in found.interval
    if abs(test.p_value - 0.05) > 1e-9:
        assert (0.0 in found.interval) == (test.p_value > 0.05)


def test_the_interval_covers_the_true_effect_19_times_out_of_20() -> None:
    rng, covered, true, runs = np.random.default_rng(5), 0, 0.8, 2000
    for _ in range(runs):
        a, b = summarise_sample(rng.normal(true, 1.0, 6)), summarise_sample(rng.normal(0.0, 1.0, 9))
        interval = hedges_g(a, b).interval
        assert interval is not None
        covered += true in interval
    assert covered / runs == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize("df", [2.0, 5.3, 18.0, 60.0])
@pytest.mark.parametrize(("t", "noncentrality"), [(0.5, 0.0), (2.1, 2.9), (-2.1, 0.7), (8.0, 5.0), (25.0, 22.0)])
def test_the_noncentral_t_distribution_is_the_integral(t: float, df: float, noncentrality: float) -> None:
    expected = integrated_cdf(t, df, noncentrality)
    assert noncentral_t_cdf(t, df, noncentrality) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("t", "df", "noncentrality"), [(-2.1, 18, 12.0), (21.0, 470.0, 63.0), (298.7, 1384.0, 111.0)])
def test_tails_too_thin_for_scipy_are_zero_or_one(t: float, df: float, noncentrality: float) -> None:
    assert noncentral_t_cdf(t, df, noncentrality) == pytest.approx(integrated_cdf(t, df, noncentrality), abs=1e-9)


@pytest.mark.parametrize("t", [0.0, 1.9, 25.0, 1e4])
@pytest.mark.parametrize("probability", [0.025, 0.975])
def test_the_noncentrality_solves_the_equation(t: float, probability: float) -> None:
    assert noncentral_t_cdf(t, 18, noncentrality_at(probability, t, 18)) == pytest.approx(probability, abs=1e-7)


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [([], [1.0], "none of softmax and 1 of mos"), ([2.0, 2.0], [1.0, 1.0], "neither softmax nor mos has any spread")],
)
def test_what_is_undefined_is_said_in_words(a: list[float], b: list[float], words: str) -> None:
    found = hedges_g(summarise_sample(a), summarise_sample(b), names=("softmax", "mos"))
    assert (found.g, found.interval) == (None, None) and words in found.missing


@pytest.mark.parametrize("difference", [1.0, -1.0])
def test_an_effect_beyond_what_can_be_computed_has_no_interval(difference: float) -> None:
    found = hedges_g(SampleSummary(n=10, mean=difference, sd=1e-9), SampleSummary(n=10, mean=0.0, sd=1e-9))
    assert found.g is not None and math.copysign(1, found.g) == difference
    assert found.interval is None and "standard errors apart" in found.missing
