from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from orchestrator.analysis import SHAPES, Shape
from orchestrator.analysis.statistics.taken_away import (
    FEWEST_DF,
    correlation_without,
    degrees_left,
    describe_constant,
    design,
    explained_share,
)

GRID = list(product((8, 16, 32), (0.01, 0.1, 0.3), (1.0, 3.0, 10.0), (2, 4, 8, 16)))
SETTINGS = pd.DataFrame(GRID, columns=list("abcd"))
FORMULAS: dict[Shape, str] = {
    "none": "1",
    "lines": "a + b + c + d",
    "levels": "C(a) + C(b) + C(c) + C(d)",
    "pairs": "(C(a) + C(b) + C(c) + C(d)) ** 2",
    "triples": "(C(a) + C(b) + C(c) + C(d)) ** 3",
}


def trials(rng: np.random.Generator, rho: float) -> pd.DataFrame:
    """Return 108 trials whose metrics x and y depend on their settings and on normal noise.

    Two pairs of settings interact. `rho` is the correlation between the noise of x and of y.
    """
    frame = SETTINGS
    x, y = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=len(frame)).T
    moved = np.log(frame["a"]) * frame["b"] * 9 + np.log(frame["d"]) * frame["c"]
    return frame.assign(x=x + 2 * moved, y=y - moved + 3 * frame["c"] ** 0.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_residuals_equal_statsmodels(shape: Shape) -> None:
    frame = trials(np.random.default_rng(0), 0.5)
    controls = design(SETTINGS, shape)
    result = correlation_without(frame["x"], frame["y"], controls)
    fits = [smf.ols(f"{name} ~ {FORMULAS[shape]}", frame).fit() for name in "xy"]
    expected = stats.spearmanr(*(fit.resid for fit in fits))
    assert result.value == pytest.approx(expected.statistic, abs=1e-9)
    assert result.df == degrees_left(controls) == fits[0].df_resid - 1
    assert result.t is not None
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(result.t), result.df))
    if shape == "none":
        assert result.p_value == pytest.approx(expected.pvalue, rel=1e-9)
    share = explained_share(frame["x"], controls)
    assert share == pytest.approx(fits[0].rsquared_adj, abs=1e-9)
    assert design(SETTINGS[[]], shape).shape == (108, 0)


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_intervals_contain_the_truth(rho: float) -> None:
    rng, controls, held = np.random.default_rng(2), design(SETTINGS, "pairs"), 0
    for _ in range(60):
        frame = trials(rng, rho)
        interval = correlation_without(frame["x"], frame["y"], controls, resamples=199).interval
        held += interval is not None and 6 / np.pi * np.arcsin(rho / 2) in interval
    assert 51 < held < 60


def test_nothing_left_after_adjustment() -> None:
    x, y = SETTINGS["a"] * 2.0, np.random.default_rng(0).normal(size=108)
    statistic = correlation_without(x, y, design(SETTINGS, "levels"))
    assert statistic.value is None and "explain x" in statistic.missing
    few = design(SETTINGS[::6], "pairs")
    assert degrees_left(few) < FEWEST_DF and explained_share(y[::6], few) is None
    assert "degrees of freedom" in correlation_without(x[::6], y[::6], few).missing


def test_nearly_constant_metric() -> None:
    values = [33] * 98 + list(range(10))
    assert describe_constant(values, "rank") == "rank is 33 in 98 of 108 trials"
    assert describe_constant([33] * 96 + list(range(12)), "rank") == ""


def test_only_numbers_have_a_line() -> None:
    settings = pd.DataFrame({"numbers": [4, 2, 1], "words": ["a", "b", "a"]})
    assert design(settings, "lines").tolist() == [[4, 0], [2, 1], [1, 0]]
    assert design(settings[["words"]], "levels").tolist() == [[0], [1], [0]]
