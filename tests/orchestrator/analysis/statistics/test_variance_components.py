"""Expected values come from regressions, textbook intervals and simulations."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from numpy.typing import ArrayLike
from scipy import stats

from orchestrator.analysis.statistics.estimates import Array
from orchestrator.analysis.statistics.variance_components import (
    between_correlation,
    variance_components,
    within_correlation,
)

TABLE = np.array([[4.0, 5.5, 6.1], [9.2, 8.0, 8.8], [1.0, 3.5, 2.2], [6.0, 6.5, 4.9]])


def simulated(
    rng: np.random.Generator,
    counts: list[int],
    *,
    share: float,
    rho: float = 0.0,
    rho_seed: float = 0.0,
    common: float | None = 0.0,
) -> pd.DataFrame:
    """Simulate two metrics, x and y, for each seed of each cell.

    The variances of cells and seeds sum to 1; the seeds' variance is `share`. The correlation of x
    and y is `rho` over cells and `rho_seed` over seeds. `common` is the standard deviation of a
    seed's effect on all cells; None gives each value its own seed.
    """

    def pairs(correlation: float, n: int) -> Array:
        return rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=n)

    cells = np.repeat(np.arange(len(counts)), counts)
    seeds = np.concatenate([np.arange(count) for count in counts])
    values = pairs(rho, len(counts))[cells] * math.sqrt(1 - share)
    values += pairs(rho_seed, len(cells)) * math.sqrt(share)
    values += (common or 0.0) * pairs(0.9, max(counts))[seeds]
    seeds = np.arange(len(cells)) if common is None else seeds
    return points_of(values[:, 0], cells, seeds, y=values[:, 1])


def points_of(x: ArrayLike, cells: Any, seeds: Any, y: Any = 0.0) -> pd.DataFrame:
    x_N = np.asarray(x, dtype=float)
    return pd.DataFrame({"x": x_N, "group": cells, "seed": seeds}).assign(y=y)


def labels(common: float | None) -> str:
    return "C(group)" if common is None else "C(group) + C(seed)"


@pytest.mark.parametrize("counts", [[3] * 8, [3, 2, 3, 1, 3, 3, 2, 3]])
@pytest.mark.parametrize("common", [None, 0.8])
def test_components_equal_regressions(counts: list[int], common: float | None) -> None:
    """If all cells share their seeds, Henderson's method 3 gives the expected values.

    Otherwise, a one-way analysis of variance gives them.
    """
    points = simulated(np.random.default_rng(1), counts, share=0.4, common=common)
    x_fit, y_fit = (smf.ols(f"{name} ~ {labels(common)}", points).fit() for name in "xy")
    components, spread, total = variance_components(points, "x"), x_fit.mse_resid, len(points)
    if common is None:
        means = points.groupby("group")["x"].mean() - points["x"].mean()
        n0 = (total - sum(count**2 for count in counts) / total) / 7
        expected = [(np.dot(means**2, counts) / 7 - spread) / n0, None]
    else:
        one = {name: smf.ols(f"x ~ C({name})", points).fit() for name in ("group", "seed")}
        expected = [one["seed"].mse_resid - spread, one["group"].mse_resid - spread]
    between = expected[0]
    noise = spread * np.mean([1 / count for count in counts])
    expected += [spread, spread / (spread + between), between / (between + noise), 8, total]
    names = ("variance_cells", "variance_seed_in_all_cells", "variance_seed_in_one_cell")
    numbers = [
        components[name] for name in (*names, "seed_share", "reliability", "cells", "trials")
    ]
    assert numbers == pytest.approx(expected)
    within = within_correlation(points, "x", "y")
    assert within.value == pytest.approx(np.corrcoef(x_fit.resid, y_fit.resid)[0, 1])
    assert within.df == x_fit.df_resid - 1


@pytest.mark.parametrize("shared", [True, False])
def test_balanced_intervals_match_textbook(shared: bool) -> None:
    """Shrout and Fleiss (1979): ICC(3, 1) and ICC(3, 3) with shared seeds, else ICC(1, 1)."""
    table = TABLE + np.array([0.0, 5.0, -3.0]) * shared
    cells, seeds = np.indices(table.shape)
    residuals = table - table.mean(axis=1, keepdims=True)
    residuals -= (table.mean(axis=0) - table.mean()) * shared
    df = 6 if shared else 8
    ratio = 3 * np.var(table.mean(axis=1), ddof=1) / ((residuals**2).sum() / df)
    low, high = (ratio / stats.f.ppf(q, 3, df) for q in (0.975, 0.025))
    seed = seeds.ravel() if shared else range(12)
    components = variance_components(points_of(table.ravel(), cells.ravel(), seed), "x")
    assert 1 - components["seed_share_high"] == pytest.approx((low - 1) / (low + 2), rel=1e-9)
    assert 1 - components["seed_share_low"] == pytest.approx((high - 1) / (high + 2), rel=1e-9)
    assert components["reliability"] == pytest.approx(1 - 1 / ratio, rel=1e-12)
    assert components["reliability_low"] == pytest.approx(1 - 1 / low, rel=1e-9)


@pytest.mark.parametrize("common", [None, 1.4])
def test_intervals_cover_the_truth(common: float | None) -> None:
    rng, share, within = np.random.default_rng(3), 0, 0
    for _ in range(300):
        drawn = simulated(rng, [1, 2, 3, 5] * 8, share=0.4, rho=-0.6, rho_seed=-0.5, common=common)
        components, pair = variance_components(drawn, "x"), within_correlation(drawn, "x", "y")
        assert pair.interval is not None
        share += components["seed_share_low"] <= 0.4 <= components["seed_share_high"]
        within += -0.5 in pair.interval
    assert (share / 300, within / 300) == pytest.approx((0.95, 0.95), abs=0.035)


@pytest.mark.parametrize("common", [None, 1.0])
def test_cell_correlation_excludes_seeds(common: float | None) -> None:
    """The expected covariance is that of the cell means, minus the part that residuals cause."""
    rng = np.random.default_rng(8)
    points = simulated(rng, [3] * 300, share=0.5, rho=-0.6, rho_seed=0.8, common=common)
    covariance = np.cov(points.groupby("group")[["x", "y"]].mean().T)
    fits = [smf.ols(f"{name} ~ {labels(common)}", points).fit() for name in "xy"]
    rests, df = np.array([fit.resid for fit in fits]), fits[0].df_resid
    cell_covariance = covariance - rests @ rests.T / df / 3
    expected = cell_covariance[0, 1] / math.sqrt(cell_covariance[0, 0] * cell_covariance[1, 1])
    value = between_correlation(points, "x", "y", blocks="group").value
    assert value == pytest.approx(expected, rel=1e-10)
    assert value == pytest.approx(-0.6, abs=0.12)
    assert covariance[0, 1] / math.sqrt(covariance[0, 0] * covariance[1, 1]) > -0.4


def test_noise_has_no_cell_correlation() -> None:
    rng = np.random.default_rng(13)
    points = simulated(rng, [3] * 10, share=1.0, rho_seed=0.9, common=1.0)
    assert variance_components(points, "x")["seed_share_high"] == 1
    assert "may be zero" in between_correlation(points, "x", "y", blocks="group").missing


def test_rounding_is_not_spread() -> None:
    values, cells = np.repeat([1.0, 2, 3, 4, 5, 7], 3), np.repeat(np.arange(6), 3)
    seeds, noise = np.tile([1, 2, 3], 6), np.random.default_rng(15).normal(size=18)
    for constant in (values, values / 3 + 1e5, values * 0.1 + seeds * 0.3):
        points = points_of(constant, cells, seeds, y=noise)
        assert "no spread" in within_correlation(points, "x", "y").missing
        components = variance_components(points, "x")
        assert (components["seed_share"], components["reliability"]) == (0.0, 1.0) and components[
            "missing"
        ]
    assert components["variance_seed_in_all_cells"] == pytest.approx(0.3**2)
    points = points_of(values, cells, seeds, y=noise[cells])
    means = between_correlation(points, "x", "y", blocks="group")
    assert means.value == pytest.approx(np.corrcoef(values[::3], noise[:6])[0, 1])


@pytest.mark.parametrize(
    ("values", "cells", "seeds", "words"),
    [
        ([1.0, 2, 3], "abc", [1, 1, 1], "more than one value"),
        ([1.0, 2], "aa", [1, 2], "2 cells"),
        ([], "", [], "2 cells"),
        ([1.0, 2, 3], "aab", [1, 2, 1], "too few cells"),
        ([5.0] * 4, "aabb", [1, 2, 1, 2], "do not differ"),
    ],
)
def test_impossible_components_have_a_reason(
    values: list[float], cells: str, seeds: list[int], words: str
) -> None:
    components = variance_components(points_of(values, list(cells), seeds), "x")
    assert components["seed_share"] is None and words in components["missing"]
