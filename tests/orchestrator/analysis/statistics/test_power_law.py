"""Power laws against scipy's bounded least squares, against laws that are known, and draws against
exact intervals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import least_squares

from orchestrator.analysis.statistics.power_law import (
    EXPONENTS,
    Curve,
    curves_over_seeds,
    f_test,
    fit_laws,
    lack_of_fit,
    over_draws,
)

Array = NDArray[np.float64]
RANKS = np.repeat([2.0, 4, 8, 16, 32, 64], 3)


def curve_of(x: ArrayLike, y: ArrayLike, resamples: int = 999) -> Curve:
    """One curve; values of one x get the seeds 0, 1, 2 ... in their order."""
    sizes = np.asarray(x, dtype=float)
    seeds = [int((sizes[:index] == size).sum()) for index, size in enumerate(sizes)]
    alone = [None] * len(sizes)
    return curves_over_seeds(sizes, y, seeds, groups=alone, parts=alone, resamples=resamples)[
        None, None
    ]


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
            lambda p: p[0] + np.exp(p[1]) * x ** -p[2] - y,
            start,
            bounds=bounds,
            xtol=1e-15,
            ftol=1e-15,
            gtol=1e-15,
        )
        for start in ([1.0, 0.0, 0.3], [y.min() * 0.9, 0.0, 1.0], [0.1, 1.0, 0.1])
    ]
    best = min(fits, key=lambda fit: fit.cost)
    return float(best.x[0]), float(best.x[1]), float(best.x[2]), float(2 * best.cost)


@pytest.mark.parametrize("seed", range(4))
def test_a_law_is_the_one_of_bounded_least_squares_over_single_values(seed: int) -> None:
    y = noisy(np.random.default_rng(seed), deviation=0.05)
    curve = curve_of(RANKS, y, resamples=9)
    laws = fit_laws([curve])
    limit, log_factor, exponent, squares = scipy_fit(RANKS, y)
    ours = laws.limit_B[0], np.log(laws.factor_KB[0, 0]), laws.exponent_B[0]
    assert ours == pytest.approx((limit, log_factor, exponent), rel=1e-3)
    within = sum(((y[x == RANKS] - y[x == RANKS].mean()) ** 2).sum() for x in np.unique(RANKS))
    assert laws.squares_B[0] + within == pytest.approx(squares, rel=1e-6)
    # A row of the draws is a fit like any other.
    again = fit_laws([curve_of(curve.x_R, curve.mean_BR[5])])
    assert again.exponent_B[0] == pytest.approx(laws.exponent_B[5], rel=1e-4)


def test_a_limit_below_zero_is_cut_there_as_by_bounded_least_squares() -> None:
    x = np.array([2.0, 4, 8, 16, 32])
    y = 6.0 - 1.2 * np.log2(x) + 0.02 * np.log2(x) ** 2
    laws = fit_laws([curve_of(x, y)])
    limit, _, exponent, squares = scipy_fit(x, y)
    assert laws.limit_B[0] == 0 and limit == pytest.approx(0, abs=1e-6)
    assert laws.exponent_B[0] == pytest.approx(exponent, rel=1e-4)
    assert laws.squares_B[0] == pytest.approx(squares, rel=1e-6)


@pytest.mark.parametrize("unit", [1.0, 1e-3, 1e6])
def test_a_law_without_noise_comes_back_in_any_unit(unit: float) -> None:
    x = np.unique(RANKS)
    laws = fit_laws([curve_of(x * unit, law(x, 4.0, 3.0, 0.5))])
    assert laws.limit_B[0] == pytest.approx(4.0, rel=1e-4) and laws.exponent_B[0] == pytest.approx(
        0.5, rel=1e-3
    )
    assert laws.factor_KB[0, 0] == pytest.approx(3.0 * unit**0.5, rel=1e-2)
    assert laws.at(8 * unit)[0] == pytest.approx(4 + 3 / 8**0.5, rel=1e-5)
    assert laws.inverse([4 + 3 / 8**0.5])[0] == pytest.approx(8 * unit, rel=1e-3)
    assert laws.inverse([3.9])[0] == np.inf


def test_values_that_rise_have_no_factor_and_their_mean_as_limit() -> None:
    laws = fit_laws([curve_of([1.0, 2, 3, 4], [1.0, 2, 3, 4])])
    assert laws.factor_KB[0, 0] == 0 and laws.limit_B[0] == pytest.approx(2.5)
    assert laws.squares_B[0] == pytest.approx(5.0)
    assert np.isnan(laws.inverse([1.0])[0])


def test_curves_that_share_limit_and_exponent_differ_by_their_factor() -> None:
    x, moved = np.unique(RANKS), 2.5
    curves = [curve_of(x, law(x, 4.0, 3.0, 0.5)), curve_of(x, law(moved * x, 4.0, 3.0, 0.5))]
    laws = fit_laws(curves)
    assert (laws.factor_KB[1, 0] / laws.factor_KB[0, 0]) ** (
        -1 / laws.exponent_B[0]
    ) == pytest.approx(moved, rel=1e-3)


def crossed(
    rng: np.random.Generator, *, common: float, rest: float, seeds: int = 3
) -> dict[tuple[Any, Any], Array]:
    """Values of two groups at six sizes, each with the same seeds: an array sizes x seeds a
    group."""
    effect_S = rng.normal(0, common, seeds)
    shared_RS = rng.normal(0, 4 * rest, (6, seeds))
    return {(None, g): g + effect_S + shared_RS + rng.normal(0, rest, (6, seeds)) for g in (0, 1)}


def drawn(values: dict[tuple[Any, Any], Array]) -> dict[tuple[Any, Any], Curve]:
    _, seeds = next(iter(values.values())).shape
    size = 6 * seeds
    return curves_over_seeds(
        np.tile(np.repeat(np.arange(1.0, 7), seeds), len(values)),
        np.concatenate([table.ravel() for table in values.values()]),
        np.tile(np.arange(seeds), 6 * len(values)).tolist(),
        groups=[group for _, group in values for _ in range(size)],
        parts=[part for part, _ in values for _ in range(size)],
        resamples=20_000,
    )


def half_width(values_B: Array) -> float:
    low, high = np.quantile(values_B[1:], [0.025, 0.975])
    return float(high - low) / 2


def test_a_contrast_within_seeds_has_the_exact_t_interval() -> None:
    """Two sizes of one curve: the error variance of a two-way layout, 10 degrees of freedom."""
    table_RS = crossed(np.random.default_rng(1), common=3.0, rest=0.1)[None, 0]
    curve = drawn({(None, 0): table_RS})[None, 0]
    rest = table_RS - table_RS.mean(axis=1, keepdims=True) - table_RS.mean(axis=0) + table_RS.mean()
    error = np.sqrt((rest**2).sum() / 10 * 2 / 3)
    assert half_width(curve.mean_BR[:, 1] - curve.mean_BR[:, 4]) == pytest.approx(
        stats.t.ppf(0.975, 10) * error, rel=0.03
    )
    assert curve.df == 10 and curve.variance == pytest.approx((rest**2).sum() / 10)


def test_a_level_has_the_t_interval_of_whole_seeds() -> None:
    """The mean over all sizes: one value a seed, two degrees of freedom."""
    table_RS = crossed(np.random.default_rng(2), common=1.0, rest=0.01)[None, 0]
    curve = drawn({(None, 0): table_RS})[None, 0]
    seeds_S = table_RS.mean(axis=0)
    expected = stats.t.ppf(0.975, 2) * seeds_S.std(ddof=1) / np.sqrt(3)
    assert half_width(curve.mean_BR.mean(axis=1)) == pytest.approx(expected, rel=0.05)


@pytest.mark.parametrize("common", [0.0, 2.0])
def test_groups_that_share_seeds_differ_by_their_pairs(common: float) -> None:
    values = crossed(np.random.default_rng(3), common=common, rest=0.1)
    curves = drawn(values)
    differences_RS = values[None, 1] - values[None, 0]
    pooled = ((differences_RS - differences_RS.mean(axis=1, keepdims=True)) ** 2).sum() / 12
    df = 12 - 2 / 2  # half of the seeds' two degrees of freedom are each group's
    expected = stats.t.ppf(0.975, df) * np.sqrt(pooled / 3)
    at_each = [
        half_width(curves[None, 1].mean_BR[:, size] - curves[None, 0].mean_BR[:, size])
        for size in range(6)
    ]
    assert at_each == pytest.approx([expected] * 6, rel=0.08)


def test_seeds_of_one_place_each_are_no_common_effect() -> None:
    y = noisy(np.random.default_rng(0))
    alone = [None] * len(RANKS)
    curve = curves_over_seeds(RANKS, y, list(range(len(RANKS))), groups=alone, parts=alone)[
        None, None
    ]
    within = sum(((y[x == RANKS] - y[x == RANKS].mean()) ** 2).sum() for x in np.unique(RANKS))
    assert curve.df == 12 and curve.variance == pytest.approx(within / 12)


def test_draws_are_the_same_each_time() -> None:
    y = noisy(np.random.default_rng(0))
    assert (curve_of(RANKS, y).mean_BR == curve_of(RANKS, y).mean_BR).all()


def test_without_a_second_seed_there_is_a_law_but_no_interval() -> None:
    x = np.unique(RANKS)
    curve = curve_of(x, law(x, 4.0, 3.0, 0.5))
    statistic = over_draws(fit_laws([curve]).limit_B)
    assert (
        statistic.value == pytest.approx(4.0, rel=1e-4)
        and statistic.interval is None
        and "seeds" in statistic.missing
    )
    assert lack_of_fit([curve], 1.0, 3) is None


def test_misfit_is_the_f_test_of_pure_error() -> None:
    y = noisy(np.random.default_rng(3))
    curve = curve_of(RANKS, y)
    squares = float(fit_laws([curve]).squares_B[0])
    table_RS = y.reshape(6, 3)
    rest = table_RS - table_RS.mean(axis=1, keepdims=True) - table_RS.mean(axis=0) + table_RS.mean()
    expected = stats.f.sf((squares / 3) / ((rest**2).sum() / 10), 3, 10)
    assert lack_of_fit([curve], squares, 3) == pytest.approx(expected)
    bent = curve_of(RANKS, y + 0.2 * (RANKS == 8))
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


@pytest.mark.parametrize(
    ("x", "y"), [([0.0, 1.0], [1.0, 2.0]), ([1.0, 2.0], [1.0, np.inf]), ([1.0], [1.0, 2.0])]
)
def test_what_is_no_curve_is_refused(x: list[float], y: list[float]) -> None:
    with pytest.raises(ValueError, match="power law"):
        curve_of(x, y)
