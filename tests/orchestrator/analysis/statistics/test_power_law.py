"""Expected values come from scipy for fits, from exact t-intervals, and from statsmodels."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.typing import ArrayLike
from scipy import stats
from scipy.optimize import curve_fit
from statsmodels.stats.anova import anova_lm

from orchestrator.analysis import Curve, curves_over_seeds, fit_laws, over_draws
from orchestrator.analysis.statistics.estimates import Array
from orchestrator.analysis.statistics.power_law import (
    EXPONENTS,
    f_test,
    lack_of_fit,
    seed_by_group_p,
)

SIZES = np.array([2.0, 4, 8, 16, 32, 64])
RANKS = np.repeat(SIZES, 3)


def curve_of(x: ArrayLike, y: ArrayLike, resamples: int = 999) -> Curve:
    trials = pd.DataFrame({"x": x, "loss": y}).assign(panel=None, group=None)
    seeds = trials.groupby("x").cumcount()
    return curves_over_seeds(trials.assign(seed=seeds), resamples=resamples)[None, None]


def law(x: Array, limit: float = 4.0, factor: float = 3.0, exponent: float = 0.5) -> Array:
    return limit + factor * x**-exponent


def noisy(seed: int, deviation: float = 0.02) -> Array:
    return law(RANKS) + np.random.default_rng(seed).normal(0, deviation, len(RANKS))


def two_way(table_RS: Array) -> Array:
    residuals_RS = table_RS - table_RS.mean(axis=1, keepdims=True) - table_RS.mean(axis=0)
    return residuals_RS + table_RS.mean()


def scipy_fit(x: Array, y: Array) -> tuple[float, float, float]:
    bounds = ([0.0, 0.0, EXPONENTS.low], [np.inf, np.inf, EXPONENTS.high])
    start = (y.min() * 0.9, 1.0, 0.3)
    best, _ = curve_fit(law, x, y, start, bounds=bounds, ftol=1e-15, xtol=1e-15, gtol=1e-15)
    return best[0], best[2], float(((law(x, *best) - y) ** 2).sum())


@pytest.mark.parametrize("curved", [False, True])
def test_law_equals_bounded_least_squares(curved: bool) -> None:
    """Without a bound at zero, the law fitted to the curved losses has a negative limit."""
    log_x = np.log2(RANKS)
    y = 6.0 - 1.2 * log_x + 0.09 * log_x**2 if curved else noisy(0, deviation=0.05)
    curve = curve_of(RANKS, y, resamples=9)
    laws = fit_laws([curve])
    limit, exponent, squares = scipy_fit(RANKS, y)
    assert (laws.limit_B[0], laws.exponent_B[0]) == pytest.approx((limit, exponent), rel=1e-3)
    table_RS = y.reshape(6, 3)
    within = ((table_RS - table_RS.mean(axis=1, keepdims=True)) ** 2).sum()
    assert laws.squares_B[0] + within == pytest.approx(squares, rel=1e-6)
    again = fit_laws([curve_of(curve.x_R, curve.mean_BR[5])])
    assert again.exponent_B[0] == pytest.approx(laws.exponent_B[5], rel=1e-4), "a draw's fit"


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e6])
def test_noiseless_law_fits_any_unit(unit: float) -> None:
    laws = fit_laws([curve_of(SIZES * unit, law(SIZES))])
    assert laws.factor_KB[0, 0] == pytest.approx(3.0 * unit**0.5, rel=1e-2)
    value = 4 + 3 / 8**0.5
    assert laws.at(8 * unit)[0] == pytest.approx(value, rel=1e-5)
    assert laws.inverse([value])[0] == pytest.approx(8 * unit, rel=1e-3)
    assert laws.inverse([3.9])[0] == np.inf


def test_rising_values_have_no_factor() -> None:
    laws = fit_laws([curve_of([1.0, 2, 3, 4], [1.0, 2, 3, 4])])
    law = laws.factor_KB[0, 0], laws.limit_B[0], laws.squares_B[0]
    assert law == pytest.approx((0, 2.5, 5.0)) and np.isnan(laws.inverse([1.0])[0])


def half_width(values_B: Array) -> float:
    low, high = np.quantile(values_B[1:], [0.025, 0.975])
    return float(high - low) / 2


def crossed(seed: int, common: float, noise: float) -> tuple[list[Array], list[Curve]]:
    rng = np.random.default_rng(seed)
    shared_RS = rng.normal(0, common, 3) + rng.normal(0, 4 * noise, (6, 3))
    tables = [group + shared_RS + rng.normal(0, noise, (6, 3)) for group in (0, 1)]
    trials = pd.DataFrame(
        {"x": np.tile(RANKS, 2), "loss": np.ravel(tables), "seed": [0, 1, 2] * 12}
    ).assign(group=np.repeat([0, 1], 18), panel=None)
    return tables, list(curves_over_seeds(trials, resamples=20_000).values())


def test_draws_give_exact_t_intervals() -> None:
    """The seeds' effects cancel in a difference between two sizes, but not in a mean over sizes.

    A difference has the error of a two-way layout. A mean has the error of the seeds' means.
    """
    [table_RS, _], _ = crossed(1, common=3.0, noise=0.1)
    curve = curve_of(RANKS, table_RS.ravel(), resamples=20_000)
    variance = (two_way(table_RS) ** 2).sum() / 10
    assert curve.df == 10 and curve.variance == pytest.approx(variance)
    contrast = stats.t.ppf(0.975, 10) * np.sqrt(variance * 2 / 3)
    width = half_width(curve.mean_BR[:, 1] - curve.mean_BR[:, 4])
    assert width == pytest.approx(contrast, rel=0.03)
    level = stats.t.ppf(0.975, 2) * table_RS.mean(axis=0).std(ddof=1) / np.sqrt(3)
    assert half_width(curve.mean_BR.mean(axis=1)) == pytest.approx(level, rel=0.05)


@pytest.mark.parametrize("common", [0.0, 2.0])
def test_shared_seeds_are_paired(common: float) -> None:
    tables, curves = crossed(3, common=common, noise=0.1)
    differences_RS = tables[1] - tables[0]
    pooled = ((differences_RS - differences_RS.mean(axis=1, keepdims=True)) ** 2).sum() / 12
    df = 12 - 2 / 2  # each group has half of the seeds' two degrees of freedom
    expected = stats.t.ppf(0.975, df) * np.sqrt(pooled / 3)
    drawn_BR = curves[1].mean_BR - curves[0].mean_BR
    assert [half_width(drawn_B) for drawn_B in drawn_BR.T] == pytest.approx(
        [expected] * 6, rel=0.08
    )


def test_seeds_of_one_rank_are_independent() -> None:
    trials = pd.DataFrame({"x": RANKS, "loss": (y := noisy(0)), "seed": range(18)})
    [curve] = curves_over_seeds(trials.assign(panel=None, group=None)).values()
    assert curve.df == 12
    assert curve.variance == pytest.approx(y.reshape(6, 3).var(axis=1, ddof=1).mean())


def test_misfit_is_pure_error_f_test() -> None:
    curve = curve_of(RANKS, y := noisy(3))
    laws = fit_laws([curve])
    error = (two_way(y.reshape(6, 3)) ** 2).sum() / 10
    expected = stats.f.sf(laws.squares_B[0] / 3 / error, 3, 10)
    assert lack_of_fit(laws) == pytest.approx(expected)
    assert f_test([curve], -1e-18, 2) == 1.0


def test_interval_over_draws_may_be_infinite() -> None:
    statistic = over_draws(np.array([2.0, *np.linspace(1, 3, 90), *[np.inf] * 10]), null=0.5)
    assert statistic.interval is not None and statistic.interval.high == np.inf
    assert statistic.p_value == pytest.approx(2 / 101)
    few = over_draws(np.array([2.0, *[1.0] * 90, *[np.nan] * 10]))
    assert few.interval is None and "10%" in few.missing


@pytest.mark.parametrize("deviation", [0.0, 2.0])
def test_seed_test_compares_nested_models(deviation: float) -> None:
    rng = np.random.default_rng(1)
    labels = np.array(list(product(range(3), (1, 2, 4, 8), range(3))))
    frame = pd.DataFrame(labels, columns=["group", "x", "seed"])
    effect_N = rng.normal(0, deviation, (3, 3))[frame.group, frame.seed]
    frame["loss"] = frame.group + 1 / frame.x + frame.seed + effect_N + rng.normal(size=36)
    frame = frame.drop(index=17)
    small, large = (
        smf.ols(f"loss ~ C(group) * C(x) + C(seed){own_seeds}", frame).fit()
        for own_seeds in ("", " + C(group):C(seed)")
    )
    expected = anova_lm(small, large)["Pr(>F)"].iloc[1]
    assert seed_by_group_p(frame) == pytest.approx(expected, rel=1e-6)
    assert (expected < 0.05) == (deviation > 0)
    assert seed_by_group_p(frame[frame.seed == 0]) is None
    constant = frame.loss.groupby([frame.group, frame.x]).transform("first")
    assert seed_by_group_p(frame.assign(loss=constant)) is None
