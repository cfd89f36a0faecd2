"""Correlations against textbook numbers, formulas written out, and a simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from orchestrator.analysis.statistics.correlation import correlate, partial_correlation

ANSCOMBE_X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE_Y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]


def test_pearson_of_anscombes_first_set_is_the_published_0_816() -> None:
    result = correlate(ANSCOMBE_X, ANSCOMBE_Y)
    assert result.value == pytest.approx(0.81642, abs=1e-5)
    assert result.p_value == pytest.approx(0.00217, abs=1e-5)


def test_spearman_interval_has_the_variance_of_bonett_and_wright() -> None:
    result = correlate(ANSCOMBE_X, ANSCOMBE_Y, ranks=True)
    assert result.value is not None and result.interval is not None
    half = 1.959963984540054 * math.sqrt((1 + result.value**2 / 2) / (11 - 3))
    assert result.interval.low == pytest.approx(
        math.tanh(math.atanh(result.value) - half), rel=1e-12
    )
    assert result.interval.high == pytest.approx(
        math.tanh(math.atanh(result.value) + half), rel=1e-12
    )


def test_the_interval_covers_the_true_correlation_19_times_out_of_20() -> None:
    rng, covered, rho = np.random.default_rng(7), 0, 0.4
    for _ in range(2000):
        x_n = rng.normal(size=30)
        y_n = rho * x_n + math.sqrt(1 - rho**2) * rng.normal(size=30)
        interval = correlate(x_n, y_n).interval
        assert interval is not None
        covered += rho in interval
    assert covered / 2000 == pytest.approx(0.95, abs=0.015)


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([], [], "at least 3 points, there is none"),
        ([1.0, 2.0], [2.0, 1.0], "at least 3 points, there are 2"),
        ([5.0, 5.0, 5.0, 5.0], [1.0, 2.0, 3.0, 4.0], "rank had the same value at all 4 points"),
        (
            [5.0, 5.0, 5.0],
            [1.0, 1.0, 1.0],
            "rank and perplexity had the same value at all 3 points",
        ),
    ],
)
def test_what_cannot_be_computed_is_said_in_words(
    x: list[float], y: list[float], words: str
) -> None:
    result = correlate(x, y, names=("rank", "perplexity"))
    assert result.value is None and result.interval is None and result.p_value is None
    assert words in result.missing


def test_three_points_have_a_correlation_but_no_interval() -> None:
    result = correlate([1.0, 2.0, 3.0], [1.0, 3.0, 2.0])
    assert result.value == pytest.approx(0.5)
    assert result.interval is None and result.missing == "an interval needs 4 points, there are 3"


def test_a_perfect_line_has_no_interval() -> None:
    for ranks in (False, True):
        result = correlate([0.1, 1.3, 2.1, 7.0, 9.1], [-0.3, -3.9, -6.3, -21.0, -27.3], ranks=ranks)
        assert (result.value, result.interval, result.p_value) == (-1, None, None)
        assert result.missing == "the points lie on one line, which leaves no interval"


def test_numbers_that_are_not_finite_and_unequal_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        correlate([1.0, 2.0, math.nan], [1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="one length"):
        correlate([1.0, 2.0, 3.0], [1.0, 2.0])


def test_one_control_gives_the_textbooks_formula_and_several_the_residuals_of_a_regression() -> (
    None
):
    rng = np.random.default_rng(2)
    z_nk = rng.normal(size=(25, 2)) + 5
    x_n, y_n = z_nk @ [1.0, -2.0] + rng.normal(size=25), z_nk @ [0.5, 1.0] + rng.normal(size=25)
    r = np.corrcoef([x_n, y_n, z_nk[:, 0]])
    formula = (r[0, 1] - r[0, 2] * r[1, 2]) / math.sqrt((1 - r[0, 2] ** 2) * (1 - r[1, 2] ** 2))
    assert partial_correlation(x_n, y_n, z_nk[:, :1]).value == pytest.approx(formula, rel=1e-12)
    design = np.column_stack([np.ones(25), z_nk])
    rest = [
        values - design @ np.linalg.solve(design.T @ design, design.T @ values)
        for values in (x_n, y_n)
    ]
    both = partial_correlation(x_n, y_n, z_nk)
    assert both.value == pytest.approx(np.corrcoef(*rest)[0, 1], rel=1e-10)
    assert both.interval is not None and both.df == 21
    half = 1.959963984540054 / math.sqrt(25 - 2 - 3)
    assert both.interval.high == pytest.approx(
        math.tanh(math.atanh(both.value or 0) + half), rel=1e-12
    )


def test_without_controls_a_partial_correlation_is_pearsons_and_a_repeated_control_counts_once() -> (
    None
):
    plain, none = (
        correlate(ANSCOMBE_X, ANSCOMBE_Y),
        partial_correlation(ANSCOMBE_X, ANSCOMBE_Y, np.empty((11, 0))),
    )
    assert none.value == pytest.approx(plain.value) and none.p_value == pytest.approx(plain.p_value)
    assert none.interval is not None and plain.interval is not None
    assert none.interval.low == pytest.approx(plain.interval.low)
    z = np.arange(11.0) ** 2
    once = partial_correlation(ANSCOMBE_X, ANSCOMBE_Y, z[:, None])
    twice = partial_correlation(
        ANSCOMBE_X, ANSCOMBE_Y, np.column_stack([z, 3 * z + 1, np.ones(11)])
    )
    assert twice.value == pytest.approx(once.value) and twice.df == once.df == 8


def test_the_interval_of_a_partial_correlation_covers_the_truth_19_times_out_of_20() -> None:
    """Levels of a factor as controls: x and y both follow it, and go together by 0.4 beside it."""
    rng, covered, rho = np.random.default_rng(4), 0, 0.4
    levels = np.eye(6)[np.arange(36) % 6][:, 1:]
    for _ in range(1500):
        factor = (levels @ rng.normal(size=5) * 3)[:, None]
        x_n, y_n = (rng.multivariate_normal([0, 0], [[1, rho], [rho, 1]], size=36) + factor).T
        interval = partial_correlation(x_n, y_n, levels).interval
        assert interval is not None
        covered += rho in interval
    assert covered / 1500 == pytest.approx(0.95, abs=0.017)


def test_a_partial_correlation_that_cannot_be_is_said_in_words() -> None:
    x, y, z = (
        [1.0, 2.0, 4.0, 3.0, 7.0],
        [2.0, 1.0, 5.0, 3.0, 3.0],
        [[2.0], [4.0], [8.0], [6.0], [14.0]],
    )
    assert (
        partial_correlation(x, y, z, names=("rank", "perplexity")).missing
        == "the controls leave nothing of rank"
    )
    assert partial_correlation(x, y, np.eye(5)).missing == "5 points are too few for 4 controls"
    few = partial_correlation(x[:4], y[:4], [[1.0], [0.0], [2.0], [5.0]])
    assert few.value is not None and few.interval is None and few.df == 1
    with pytest.raises(ValueError, match="a row a point"):
        partial_correlation(x, y, [[1.0]])
