from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from search_spaces import monotone_ranks
from search_spaces.gss_grid import bends_and_their_smooth_forms, piecewise, smooth

mpl.use("agg")


@pytest.mark.parametrize(("c", "k"), [(0.0, 2.0), (-1.5, 2.5), (-1.5, 3.0), (1.0, 1.0)])
def test_smooth_form_follows_the_formula(c: float, k: float) -> None:
    assert [piecewise(x, c, k) for x in (c + 1, c, c - 2)] == [c + 1, c, c - 2 * k]
    # softplus(0) = ln 2, and softplus(ln 3) = ln 4.
    assert smooth(c, c, k) == pytest.approx(c - (k - 1) * math.log(2))
    x = c + math.log(3)
    assert smooth(x, c, k) == pytest.approx(x - (k - 1) * math.log(4 / 3))
    # Softmax of the smooth form at c = 0, k = 2 is sigsoftmax: exp(x) sigmoid(x).
    assert smooth(0.7, 0, 2) == pytest.approx(0.7 + math.log(1 / (1 + math.exp(-0.7))))
    assert smooth(c + 800, c, k) == c + 800 and smooth(c - 800, c, k) == c - 800 * k


def test_figure_shows_largest_distance_at_bend() -> None:
    sentence, figure, table = bends_and_their_smooth_forms(pd.DataFrame())
    [axes] = figure.axes
    lines = [np.asarray(line.get_ydata(), float) for line in axes.get_lines()]
    gaps = [a - b for a, b in zip(lines[::2], lines[1::2], strict=True)]
    assert len(gaps) == 3 and all((gap > 0).all() for gap in gaps)
    assert [gap.max() for gap in gaps] == pytest.approx([math.log(2) * n for n in (1, 1.5, 2)])
    assert list(table["largest distance"]) == pytest.approx([gap.max() for gap in gaps])
    assert list(table["at x"]) == pytest.approx([0, -1.5, -1.5])
    assert "0.693 (sigsoftmax)" in sentence and "1.386" in sentence


def exact_rank(rows: list[list[int]]) -> int:
    """Return the rank over the rationals, by elimination with fractions."""
    left, rank = [[Fraction(value) for value in row] for row in rows], 0
    for column in range(len(rows[0])):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        left.remove(pivot)
        rank += 1
        for row in left:
            factor = row[column] / pivot[column]
            row[:] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return rank


def walked(x: int) -> int:
    """Return PLIF at x, as a walk from the first knot, piece by piece."""
    knots, slopes = monotone_ranks.knots_and_slopes()
    value = slopes[0] * min(x, knots[0])
    for (left, right), slope in zip(pairwise(knots), slopes[1:-1], strict=True):
        value += slope * max(0, min(x, right) - left)
    return value + slopes[-1] * max(0, x - knots[-1])


EXACT: dict[str, Callable[[int], int]] = {
    "x": lambda x: x,
    "2x + 1": lambda x: 2 * x + 1,
    "x³": lambda x: x**3,
    "(x + 1)³": lambda x: (x + 1) ** 3,
    "PL(x; 0, 2)": lambda x: x if x > 0 else 2 * x,
    "PLIF": walked,
    "(x + 1)²": lambda x: (x + 1) ** 2,
    "|x|": lambda x: max(x, -x),
    "limited x": lambda x: sorted((-(10**11), x, 10**11))[1],
    "rounded x": lambda x: x - x % 10**11,
}


def test_ranks_equal_elimination_with_fractions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monotone_ranks, "ROWS", 12)
    monkeypatch.setattr(monotone_ranks, "WIDTHS", (1, 2, 3))
    _, table = monotone_ranks.ranks_of_functions(pd.DataFrame())
    assert list(table["f"]) == list(EXACT)
    for width in (1, 2, 3):
        matrix = monotone_ranks.factor_product(12, width).tolist()
        for name, text in zip(table["f"], table[f"rank, d = {width}"], strict=True):
            rank, bound = map(int, text.split(" of "))
            assert rank == exact_rank([[EXACT[name](x) for x in row] for row in matrix])
            assert rank <= bound <= 12


def test_only_linear_functions_keep_the_rank() -> None:
    sentence, table = monotone_ranks.ranks_of_functions(pd.DataFrame())
    ranks = dict(zip(table["f"], table["rank, d = 5"], strict=True))
    assert (ranks["x"], ranks["2x + 1"]) == ("5 of 5", "6 of 6")
    # Monomials of degree 3 in 5 variables; all of degree at most 3; at most 2.
    assert (ranks["x³"], ranks["(x + 1)³"], ranks["(x + 1)²"]) == (
        "35 of 35",
        "56 of 56",
        "21 of 21",
    )
    assert ranks["PLIF"] == "100 of 100"
    assert "at most 6 for x, 2x + 1; from 7 to 99 for x³, (x + 1)³, (x + 1)²; 100" in sentence
