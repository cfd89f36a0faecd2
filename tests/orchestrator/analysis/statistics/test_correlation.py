"""Expected values come from textbooks, formulas, jackknifes and permutations."""

from __future__ import annotations

import math
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from orchestrator.analysis import Statistic, correlate, over_blocks
from orchestrator.analysis.statistics.correlation import partial_correlation
from orchestrator.analysis.statistics.jackknife import permutation_p

ANSCOMBE_X = [10, 8, 13, 9, 11, 14, 6, 4, 12, 7, 5]
ANSCOMBE_Y = [8.04, 6.95, 7.58, 8.81, 8.33, 9.96, 7.24, 4.26, 10.84, 4.82, 5.68]
ROWS, COLUMNS = (labels.ravel() for labels in np.indices((5, 3)))
RNG = np.random.default_rng(3)
X, Y = (RNG.normal(size=(2, 5, 1)) + 0.5 * RNG.normal(size=(2, 5, 3))).reshape(2, 15)
Y += 0.6 * X


def fisher(r: float | None, variance: float) -> tuple[float, float]:
    assert r is not None
    half = 1.959963984540054 * math.sqrt(variance)
    return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)


def ends(statistic: Statistic) -> tuple[float, float]:
    assert statistic.interval is not None
    return statistic.interval.low, statistic.interval.high


GRID = pd.DataFrame({"x": X, "y": Y, "c": ROWS})


def over_rows(points: pd.DataFrame) -> Statistic:
    return over_blocks(lambda part: correlate(part["x"], part["y"]), points, "c")


@pytest.mark.parametrize("ranks", [False, True])
def test_anscombe_interval_matches_textbook(ranks: bool) -> None:
    """Rank correlations use the variance of Bonett and Wright (2000)."""
    result = correlate(ANSCOMBE_X, ANSCOMBE_Y, ranks=ranks)
    assert ranks or (result.value, result.p_value) == pytest.approx((0.81642, 0.00217), abs=1e-5)
    r = stats.spearmanr(ANSCOMBE_X, ANSCOMBE_Y).statistic if ranks else 0.81642052
    assert result.value == pytest.approx(r)
    assert ends(result) == pytest.approx(fisher(r, (1 + r**2 / 2 * ranks) / 8))


@pytest.mark.parametrize(
    ("x", "y", "words", "value"),
    [
        ([1.0, 2.0], [2.0, 1.0], "at least 3 points", None),
        ([5.0] * 4, [1.0, 2.0, 3.0, 4.0], "rank did not vary", None),
        ([5.0] * 3, [1.0] * 3, "rank and perplexity had", None),
        ([1.0, 2.0, 3.0], [1.0, 3.0, 2.0], "4 points", 0.5),
        ([0.1, 1.3, 2.1, 7.0], [-0.3, -3.9, -6.3, -21.0], "", -1.0),
    ],
)
def test_impossible_correlation_has_a_reason(
    x: list[float], y: list[float], words: str, value: float | None
) -> None:
    result = correlate(x, y, names=("rank", "perplexity"))
    assert (result.value, result.interval) == (value and pytest.approx(value), None)
    assert result.p_value is None or (words and words in result.missing)
    with pytest.raises(ValueError, match="finite"):
        correlate(x, [*y[1:], math.nan])


def test_settings_may_prevent_partial_correlation() -> None:
    z_nk = RNG.normal(size=(25, 2))
    x_n, y_n = RNG.normal(size=(2, 25))
    once = partial_correlation(x_n, y_n, z_nk).value
    repeated = np.column_stack([z_nk, 3 * z_nk + 1, np.ones(25)])
    assert partial_correlation(x_n, y_n, repeated).value == pytest.approx(once, rel=1e-10)
    assert "explain x" in partial_correlation(z_nk[:, 0], y_n, z_nk).missing
    assert "too few" in partial_correlation(x_n[:5], y_n[:5], np.eye(5)).missing


def test_jackknife_uses_fishers_scale() -> None:
    result = over_rows(GRID)
    without = [np.arctanh(np.corrcoef(X[row != ROWS], Y[row != ROWS])[0, 1]) for row in range(5)]
    z = math.atanh(np.corrcoef(X, Y)[0, 1])
    error = stats.sem(5 * z - 4 * np.array(without))
    half = stats.t.ppf(0.975, 4) * error
    assert ends(result) == pytest.approx((math.tanh(z - half), math.tanh(z + half)))
    assert result.p_value == pytest.approx(2 * stats.t.sf(abs(z) / error, 4)) and result.df == 4
    few = over_rows(GRID[ROWS < 4])
    assert few.value is not None and few.interval is None and "5 values of c" in few.missing


@pytest.mark.parametrize("missing", [None, 7])
def test_permutation_p_equals_brute_force(missing: int | None) -> None:
    finite = np.arange(15) != missing
    table, r = np.where(finite, X, np.nan).reshape(5, 3), []
    for rows, columns in product(permutations(range(5)), permutations(range(3))):
        moved = table[np.ix_(rows, columns)].ravel()
        pairs = np.isfinite(moved) & finite
        r.append(abs(np.corrcoef(moved[pairs], Y[pairs])[0, 1]))
    exact = np.mean(np.array(r) >= r[0] - 1e-12)
    p_value = permutation_p(X[finite], Y[finite], ROWS[finite], COLUMNS[finite])
    assert p_value == pytest.approx(exact, abs=0.015) and 0.01 < exact < 0.6


def test_labels_may_be_missing() -> None:
    names = np.array([None, "x", "y", "z", "w"], dtype=object)[ROWS]
    assert over_rows(GRID.assign(c=names)) == over_rows(GRID)
    p_value = permutation_p(X, Y, names, COLUMNS)
    assert p_value == pytest.approx(permutation_p(X, Y, ROWS, COLUMNS), abs=0.02)
