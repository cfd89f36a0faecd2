"""Correlations over a grid: a jackknife over rows against its formula, permutations against all of
them."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from orchestrator.analysis.statistics.correlation import correlate
from orchestrator.analysis.statistics.estimates import Statistic
from orchestrator.analysis.statistics.jackknife import over_blocks, permutation_p

ROWS, COLUMNS = (labels.ravel() for labels in np.indices((5, 3)))


def grid(seed: int = 3) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 5, 1)) + 0.5 * rng.normal(size=(2, 5, 3))
    return x.ravel(), (y + 0.6 * x).ravel()


def over_rows(
    x: NDArray[np.float64], y: NDArray[np.float64], rows: NDArray[np.int64] = ROWS
) -> Statistic:
    return over_blocks(lambda kept: correlate(x[kept], y[kept]), rows, name="c")


def test_the_interval_is_tukeys_on_fishers_scale() -> None:
    x, y = grid()
    ours = over_rows(x, y)
    without = [np.arctanh(np.corrcoef(x[row != ROWS], y[row != ROWS])[0, 1]) for row in range(5)]
    z = math.atanh(np.corrcoef(x, y)[0, 1])
    pseudo = 5 * z - 4 * np.array(without)
    error = stats.sem(pseudo)
    assert ours.interval is not None and ours.df == 4
    half = stats.t.ppf(0.975, 4) * error
    assert (ours.interval.low, ours.interval.high) == pytest.approx(
        (math.tanh(z - half), math.tanh(z + half))
    )
    assert ours.p_value == pytest.approx(2 * stats.t.sf(abs(z) / error, 4))


def test_p_is_that_of_all_permutations() -> None:
    x, y = grid()
    table, seen = x.reshape(5, 3), abs(np.corrcoef(x, y)[0, 1])
    orders = itertools.product(itertools.permutations(range(5)), itertools.permutations(range(3)))
    r = [
        abs(np.corrcoef(table[np.ix_(rows, columns)].ravel(), y)[0, 1]) for rows, columns in orders
    ]
    exact = np.mean(np.array(r) >= seen - 1e-12)
    assert 0.01 < exact < 0.6
    assert permutation_p(x, y, ROWS, COLUMNS) == pytest.approx(exact, abs=0.015)


def test_missing_cells_are_left_out_of_every_permutation() -> None:
    x, y = grid()
    kept = np.arange(15) != 7
    table = np.where(kept, x, np.nan).reshape(5, 3)
    orders = list(
        itertools.product(itertools.permutations(range(5)), itertools.permutations(range(3)))
    )
    r = []
    for rows, columns in orders:
        moved = table[np.ix_(rows, columns)].ravel()
        both = np.isfinite(moved) & kept
        r.append(abs(np.corrcoef(moved[both], y[both])[0, 1]))
    exact = np.mean(np.array(r) >= r[0] - 1e-12)
    assert permutation_p(x[kept], y[kept], ROWS[kept], COLUMNS[kept]) == pytest.approx(
        exact, abs=0.015
    )


def test_effects_of_rows_alone_are_rarely_significant() -> None:
    """Without any relation p < 0.05 in about 5% of grids; independent cells would say so in 20% or
    more."""
    rng = np.random.default_rng(0)
    rows = np.repeat(np.arange(9), 3)
    found = independent = 0
    for _ in range(200):
        x, y = (rng.normal(size=(2, 9, 1)) + 0.3 * rng.normal(size=(2, 9, 3))).reshape(2, 27)
        found += (over_rows(x, y, rows).p_value or 1) < 0.05
        independent += (correlate(x, y).p_value or 1) < 0.05
    assert 2 <= found <= 20 and independent >= 40


def test_too_few_rows_have_no_interval() -> None:
    x, y = grid()
    few = ROWS < 4
    ours = over_rows(x[few], y[few], ROWS[few])
    assert ours.value is not None and (ours.interval, ours.p_value) == (None, None)
    assert "5 values of c" in ours.missing


def test_labels_may_be_texts_with_missing_ones() -> None:
    x, y = grid()
    names = np.array([None, "x", "y", "z", "w"], dtype=object)[ROWS]
    ours = over_blocks(lambda kept: correlate(x[kept], y[kept]), names, name="form")
    assert ours == over_rows(x, y)
    assert permutation_p(x, y, names, COLUMNS) == pytest.approx(
        permutation_p(x, y, ROWS, COLUMNS), abs=0.02
    )


def test_a_window_of_y_takes_no_permuted_cell_away() -> None:
    """Without a relation p is below 0.1 about as often as that, though only the better half of y
    counts."""
    rng = np.random.default_rng(4)
    rows, columns = (labels.ravel() for labels in np.indices((6, 4)))
    p_values = []
    for _ in range(100):
        x, y = rng.normal(size=(2, 24))
        p_values.append(permutation_p(x, np.where(y <= np.median(y), y, np.nan), rows, columns))
    assert 2 <= np.sum(np.array(p_values) < 0.1) <= 22
