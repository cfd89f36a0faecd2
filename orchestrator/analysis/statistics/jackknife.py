"""Jackknife over blocks and permutation test, for correlations of dependent points.

Grid cells share row and column effects, so they are not independent. Both methods treat rows as
exchangeable. If effects vary smoothly over rows, intervals and p-values are too small.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from orchestrator.analysis.statistics.correlation import ON_LINE, is_on_line
from orchestrator.analysis.statistics.estimates import Estimate, Interval, Statistic
from orchestrator.words import too_few

FEWEST_BLOCKS = 5
PERMUTATIONS, BATCH = 9_999, 303
SEED = 0


def over_blocks(
    estimate: Callable[[pd.DataFrame], Statistic], points: pd.DataFrame, setting: str
) -> Statistic:
    """Return the correlation `estimate` of all points, with interval and p-value over blocks.

    The points with one value of `setting` are a block. Tukey's jackknife leaves out each of B
    blocks in turn. Interval and p-value are Student's with B - 1 degrees of freedom, on Fisher's
    scale.
    """
    block_n, name = _codes(points[setting]), setting.rpartition(".")[2]
    count = int(block_n.max(initial=-1)) + 1
    full_estimate = estimate(points)
    if (value := full_estimate.value) is None:
        return full_estimate
    if is_on_line(value):
        return Statistic(value=float(round(value)), missing=ON_LINE)
    if missing := too_few(FEWEST_BLOCKS, f"values of {name}", count):
        return Statistic(value=value, missing=missing)
    values = [estimate(points[block_n != block]).value for block in range(count)]
    estimate_B = np.array([r for r in values if r is not None and not is_on_line(r)])
    if len(estimate_B) < count:
        missing = f"if one value of {name} is left out, the correlation is undefined"
        return Statistic(value=value, missing=missing)
    error = math.sqrt((count - 1) * float(np.arctanh(estimate_B).var()))
    if error == 0:
        missing = f"the correlation does not change if a value of {name} is left out"
        return Statistic(value=value, missing=missing)
    test = Estimate(value=math.atanh(value), error=error, df=count - 1).test()
    assert test.interval is not None
    return replace(test, value=value, interval=Interval(*map(math.tanh, test.interval)))


def permutation_p(x: ArrayLike, y: ArrayLike, rows: ArrayLike, columns: ArrayLike) -> float:
    """Return the two-sided p-value of Pearson's r over grid cells labelled by `rows` and `columns`.

    Cells may be missing. Whole rows and columns of x are permuted against y. Every call uses the
    same `PERMUTATIONS` draws.
    """
    row_n, column_n = _codes(rows), _codes(columns)
    x_RC, y_RC = np.full((2, row_n.max() + 1, column_n.max() + 1), math.nan)
    x_RC[row_n, column_n], y_RC[row_n, column_n] = x, y
    y_nP = pd.DataFrame(np.tile(y_RC.reshape(-1, 1), BATCH))
    rng, r_xy = np.random.default_rng(SEED), y_nP[0].corr(pd.Series(x_RC.ravel()))
    extreme_count = 1
    for _ in range(PERMUTATIONS // BATCH):
        row_PR, column_PC = (
            rng.permuted(np.tile(np.arange(n), (BATCH, 1)), axis=1) for n in x_RC.shape
        )
        permuted_PRC = x_RC[row_PR[:, :, None], column_PC[:, None, :]]
        r_P = y_nP.corrwith(pd.DataFrame(permuted_PRC.reshape(BATCH, -1).T))
        extreme_count += int((r_P.abs() >= abs(r_xy) - 1e-12).sum())
    return extreme_count / (PERMUTATIONS + 1)


def _codes(labels: ArrayLike) -> NDArray[np.intp]:
    # Labels may be missing or of several types, so compare them as text.
    return np.unique(
        [str(label) for label in np.asarray(labels, dtype=object)], return_inverse=True
    )[1]
