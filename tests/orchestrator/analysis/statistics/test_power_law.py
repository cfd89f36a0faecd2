"""Power laws against scipy's bounded least squares, against laws that are known, and how often intervals hold them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import least_squares

from orchestrator.analysis.statistics.power_law import (
    EXPONENTS,
    curve_over_seeds,
    f_test,
    fit_laws,
    lack_of_fit,
    over_draws,
)

Array = NDArray[np.float64]
RANKS = np.repeat([2.0, 4, 8, 16, 32, 64], 3)


def law(x: Array, limit: float, factor: float, exponent: float) -> Array:
    values: Array = limit + factor * x**-exponent
    return values


def noisy(rng: np.random.Generator, x: Array = RANKS, *, deviation: float = 0.02) -> Array:
    values: Array = law(x, 4.0, 3.0, 0.5) + rng.normal(0, deviation, len(x))
    return values


def scipy_fit(x: Array, y: Array) -> tuple[float, float, float, float]:
    """E, log a, b and the sum of squares, from several starts."""
    bounds = ([0.0, -50.0, EXPONENTS.low], [np.inf, 50.0, EXPONENTS.high])
    fits = [
        least_squares(
            lambda p: p[0] + np.exp(p[1]) * x ** -p[2] - y, start, bounds=bounds, xtol=1e-15, ftol=1e-15, gtol=1e-15
        )
        for start in ([1.0, 0.0, 0.3], [y.min() * 0.9, 0.0, 1.0], [0.1, 1.0, 0.1])
    ]
    best = min(fits, key=lambda fit: fit.cost)
    return float(best.x[0]), float(best.x[1]), float(best.x[2]), float(2 * best.cost)


@pytest.mark.parametrize("seed", range(4))
def test_a_law_is_the_one_of_bounded_least_squares_over_single_values(seed: int) -> None:
    y = noisy(np.random.default_rng(seed), deviation=0.05)
    curve = curve_over_seeds(RANKS, y, resamples=9)
    laws = fit_laws([curve])
    limit, log_factor, exponent, squares = scipy_fit(RANKS, y)
    ours = laws.limit_B[0], np.log(laws.factor_KB[0, 0]), laws.exponent_B[0]
    assert ours == pytest.approx((limit, log_factor, exponent), rel=1e-3)
    within = sum(((y[x == RANKS] - y[x == RANKS].mean()) ** 2).sum() for x in np.unique(RANKS))
    assert laws.squares_B[0] + within == pytest.approx(squares, rel=1e-6)
    # A row of the draws is a fit like any other.
    again = fit_laws([curve_over_seeds(curve.x_R, curve.mean_BR[5])])
    assert again.exponent_B[0] == pytest.approx(laws.exponent_B[5], rel=1e-4)


def test_a_limit_below_zero_is_cut_there_as_by_bounded_least_squares() -> None:
    x = np.array([2.0, 4, 8, 16, 32])
    y = 6.0 - 1.2 * np.log2(x) + 0.02 * np.log2(x) ** 2
    laws = fit_laws([curve_over_seeds(x, y)])
    limit, _, exponent, squares = scipy_fit(x, y)
    assert laws.limit_B[0] == 0 and limit == pytest.approx(0, abs=1e-6)
    assert laws.exponent_B[0] == pytest.approx(exponent, rel=1e-4)
    assert laws.squares_B[0] == pytest.approx(squares, rel=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e6])
def test_a_law_without_noise_comes_back_in_any_unit(unit: float) -> None:
    x = np.unique(RANKS)
    laws = fit_laws([curve_over_seeds(x * unit, law(x, 4.0, 3.0, 0.5))])
    assert laws.limit_B[0] == pytest.approx(4.0, rel=1e-4) and laws.exponent_B[0] == pytest.approx(0.5, rel=1e-3)
    assert laws.factor_KB[0, 0] == pytest.approx(3.0 * unit**0.5, rel=1e-2)
    assert laws.at(8 * unit)[0] == pytest.approx(4 + 3 / 8**0.5, rel=1e-5)
    assert laws.inverse([4 + 3 / 8**0.5])[0] == pytest.approx(8 * unit, rel=1e-3)
    assert laws.inverse([3.9])[0] == np.inf


def test_values_that_rise_have_no_factor_and_their_mean_as_limit() -> None:
    laws = fit_laws([curve_over_seeds([1.0, 2, 3, 4], [1.0, 2, 3, 4])])
    assert laws.factor_KB[0, 0] == 0 and laws.limit_B[0] == pytest.approx(2.5)
    assert laws.squares_B[0] == pytest.approx(5.0)
    assert np.isnan(laws.inverse([1.0])[0])


def test_curves_that_share_limit_and_exponent_differ_by_their_factor() -> None:
    x, moved = np.unique(RANKS), 2.5
    curves = [curve_over_seeds(x, law(x, 4.0, 3.0, 0.5)), curve_over_seeds(x, law(moved * x, 4.0, 3.0, 0.5))]
    laws = fit_laws(curves)
    assert (laws.factor_KB[1, 0] / laws.factor_KB[0, 0]) ** (-1 / laws.exponent_B[0]) == pytest.approx(moved, rel=1e-3)


def test_intervals_hold_the_truth_about_as_often_as_they_say() -> None:
    rng, held, times = np.random.default_rng(5), np.zeros(2), 150
    for _ in range(times):
        laws = fit_laws([curve_over_seeds(RANKS, noisy(rng), resamples=199)])
        intervals = [over_draws(values).interval for values in (laws.limit_B, laws.exponent_B)]
        held += [
            interval is not None and true in interval for true, interval in zip((4.0, 0.5), intervals, strict=True)
        ]
    assert (held / times > 0.87).all() and (held / times < 0.99).all()


def test_draws_are_the_same_each_time_and_independent_of_another_streams() -> None:
    y = noisy(np.random.default_rng(0))
    first, again, other = (curve_over_seeds(RANKS, y, stream=stream, resamples=2_000) for stream in (0, 0, 1))
    assert (first.mean_BR == again.mean_BR).all()
    assert abs(np.corrcoef(first.mean_BR[1:, 0], other.mean_BR[1:, 0])[0, 1]) < 0.1
    # The spread of a mean's draws is its standard error, from the variance within places.
    assert first.variance is not None
    assert first.mean_BR[1:].std(axis=0) == pytest.approx(np.sqrt(first.variance / 3), rel=0.05)


def test_without_a_second_seed_there_is_a_law_but_no_interval() -> None:
    x = np.unique(RANKS)
    curve = curve_over_seeds(x, law(x, 4.0, 3.0, 0.5))
    statistic = over_draws(fit_laws([curve]).limit_B)
    assert (
        statistic.value == pytest.approx(4.0, rel=1e-4) and statistic.interval is None and "seeds" in statistic.missing
    )
    assert lack_of_fit([curve], 1.0, 3) is None


def test_misfit_is_the_f_test_of_pure_error() -> None:
    y = noisy(np.random.default_rng(3))
    curve = curve_over_seeds(RANKS, y)
    squares = float(fit_laws([curve]).squares_B[0])
    within = sum(((y[x == RANKS] - y[x == RANKS].mean()) ** 2).sum() for x in np.unique(RANKS))
    assert lack_of_fit([curve], squares, 3) == pytest.approx(stats.f.sf((squares / 3) / (within / 12), 3, 12))
    bent = curve_over_seeds(RANKS, y + 0.2 * (RANKS == 8))
    misfit = lack_of_fit([bent], float(fit_laws([bent]).squares_B[0]), 3)
    assert misfit is not None and misfit < 1e-3
    assert f_test([curve], -1e-18, 2) == 1.0


def test_an_interval_may_reach_infinity_and_a_few_draws_may_lack_a_number() -> None:
    drawn = np.concatenate([[2.0], np.linspace(1, 3, 90), np.full(10, np.inf)])
    statistic = over_draws(drawn, null=0.5)
    assert statistic.interval is not None and statistic.interval.high == np.inf
    assert statistic.p_value == pytest.approx(2 / 101)
    none = over_draws(np.concatenate([[2.0], np.full(90, 1.0), np.full(10, np.nan)]))
    assert none.interval is None and "10%" in none.missing


@pytest.mark.parametrize(("x", "y"), [([0.0, 1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0, np.inf]), ([1.0], [1.0, 2.0])])
def test_what_is_no_curve_is_refused(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="power law"):
        curve_over_seeds(x, y)
