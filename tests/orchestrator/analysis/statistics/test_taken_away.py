"""Correlations of what settings leave, against residuals of statsmodels, and how often intervals
hold the truth."""

from __future__ import annotations

from itertools import product

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from orchestrator.analysis.statistics.taken_away import (
    FEWEST_LEFT,
    SHAPES,
    Shape,
    alike,
    correlation_without,
    degrees_left,
    design,
    explained_share,
)

LEVELS = ((8, 16, 32), (0.01, 0.1, 0.3), (1.0, 3.0, 10.0), (2, 4, 8, 16))
GRID = list(product(*LEVELS))
SETTINGS = list(zip(*GRID, strict=True))
FORMULAS: dict[Shape, str] = {
    "none": "1",
    "lines": "a + b + c + d",
    "levels": "C(a) + C(b) + C(c) + C(d)",
    "pairs": "(C(a) + C(b) + C(c) + C(d)) ** 2",
    "triples": "(C(a) + C(b) + C(c) + C(d)) ** 3",
}


def trials(rng: np.random.Generator, rho: float = 0.0) -> pd.DataFrame:
    """108 trials whose x and y the settings move, two of them together, beside normal parts that go
    together by rho."""
    frame = pd.DataFrame(GRID, columns=list("abcd"))
    x, y = rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=len(frame)).T
    moved = np.log(frame["a"]) * frame["b"] * 9 + np.log(frame["d"]) * frame["c"]
    return frame.assign(x=x + 2 * moved, y=y - moved + 3 * frame["c"] ** 0.5)


@pytest.mark.parametrize("shape", SHAPES)
def test_what_is_left_is_what_statsmodels_leaves(shape: Shape) -> None:
    frame = trials(np.random.default_rng(0), 0.5)
    controls = design(SETTINGS, shape, count=108)
    ours = correlation_without(frame["x"], frame["y"], controls)
    fits = [smf.ols(f"{name} ~ {FORMULAS[shape]}", frame).fit() for name in "xy"]
    theirs = stats.spearmanr(*(fit.resid for fit in fits))
    assert ours.value == pytest.approx(theirs.statistic, abs=1e-9)
    assert ours.df == degrees_left(controls) == fits[0].df_resid - 1
    assert ours.t is not None and ours.p_value == pytest.approx(
        2 * stats.t.sf(abs(ours.t), ours.df)
    )
    if shape == "none":
        assert ours.p_value == pytest.approx(theirs.pvalue, rel=1e-9)
    else:
        assert explained_share(frame["x"], controls) == pytest.approx(
            fits[0].rsquared_adj, abs=1e-9
        )


def test_108_trials_leave_67_degrees_of_freedom_in_pairs_of_levels_and_23_in_triples() -> None:
    assert [degrees_left(design(SETTINGS, shape, count=108)) for shape in SHAPES] == [
        106,
        102,
        97,
        67,
        23,
    ]


@pytest.mark.parametrize("shape", SHAPES)
def test_without_settings_nothing_is_taken_away(shape: Shape) -> None:
    assert design([], shape, count=7).shape == (7, 0)


def test_the_way_of_taking_away_decides_where_two_settings_work_together() -> None:
    frame = trials(np.random.default_rng(1))
    rho = {
        shape: correlation_without(frame["x"], frame["y"], design(SETTINGS, shape, count=108))
        for shape in SHAPES
    }
    assert rho["levels"].value is not None and rho["levels"].value < -0.5
    assert rho["levels"].interval is not None and 0.0 not in rho["levels"].interval
    assert rho["pairs"].interval is not None and 0.0 in rho["pairs"].interval


@pytest.mark.parametrize("rho", [0.0, 0.6])
def test_intervals_hold_the_truth_about_as_often_as_they_say(rho: float) -> None:
    rng, controls, held, times = (
        np.random.default_rng(2),
        design(SETTINGS, "pairs", count=108),
        0,
        60,
    )
    for _ in range(times):
        frame = trials(rng, rho)
        interval = correlation_without(frame["x"], frame["y"], controls, resamples=199).interval
        held += interval is not None and 6 / np.pi * np.arcsin(rho / 2) in interval
    assert 0.85 * times < held < times


def test_too_few_trials_leave_no_correlation() -> None:
    few = GRID[::6]
    controls = design(list(zip(*few, strict=True)), "pairs", count=len(few))
    x, y = np.random.default_rng(0).normal(size=(2, len(few)))
    statistic = correlation_without(x, y, controls)
    assert (
        degrees_left(controls) < FEWEST_LEFT
        and statistic.value is None
        and "degrees of freedom" in statistic.missing
    )
    assert explained_share(x, controls) is None


def test_settings_that_say_all_leave_nothing() -> None:
    y = np.random.default_rng(0).normal(size=108)
    statistic = correlation_without(
        np.array(SETTINGS[0]) * 2.0,
        y,
        design(SETTINGS, "levels", count=108),
        names=("rank", "loss"),
    )
    assert statistic.value is None and statistic.missing == "the settings leave nothing of rank"


def test_a_metric_that_is_one_number_in_nine_trials_of_ten_is_told() -> None:
    values = [33] * 98 + list(range(10))
    assert alike(values, "kl_rank_1e-3") == "kl_rank_1e-3 is 33 in 98 of 108 trials"
    assert alike([33] * 96 + list(range(12)), "kl_rank_1e-3") == ""
    assert alike([], "rank") == "no trial has rank"


def test_only_numbers_have_a_straight_line() -> None:
    words, numbers = ["a", "b", "a"], [4, 2, 1]
    assert (
        design([words], "lines", count=3).tolist()
        == design([words], "levels", count=3).tolist()
        == [[0], [1], [0]]
    )
    assert design([numbers, words], "lines", count=3).tolist() == [[4, 0], [2, 1], [1, 0]]
    with pytest.raises(ValueError, match="finite"):
        correlation_without([1.0, np.nan], [1.0, 2.0], np.zeros((2, 0)))
