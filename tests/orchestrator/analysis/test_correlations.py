from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.multitest import multipletests

from orchestrator.analysis import (
    BETTER_HALF,
    CELLS,
    PUBLISHED_WINDOW,
    SINGLE,
    WITHIN,
    CorrelationNumbers,
    adjust_together,
    correlation_numbers,
    rows,
)
from search_spaces.study import Correlation, PublishedCorrelation

REQUEST = Correlation(
    windows={"ptb": (56.6, 57.6)},
    published={"ptb": PublishedCorrelation(all_cells=0.48, windowed=0.24)},
)


def make_frame(perplexities: list[float], *, states: list[str] | None = None) -> pd.DataFrame:
    ranks = [float(100 + 7 * i % 11) for i in range(len(perplexities))]
    state = states or ["done"] * len(perplexities)
    groups = [f"cell {i}" for i in range(len(perplexities))]
    return pd.DataFrame(
        {"state": state, "group": groups, "press_rank": ranks, "test_perplexity": perplexities}
    )


def correlate(
    frame: pd.DataFrame, *, corpus: str = "ptb", scale: str = "quick"
) -> CorrelationNumbers:
    return correlation_numbers(frame, REQUEST, corpus=corpus, scale=scale)


def lines_of(numbers: CorrelationNumbers) -> dict[str, Any]:
    return {line.over: line for line in rows(numbers.lines)}


@pytest.mark.parametrize(
    ("corpus", "scale", "window", "n"),
    [
        ("ptb", "paper", PUBLISHED_WINDOW, 4),
        ("ptb", "quick", BETTER_HALF, 3),
        ("pydocs", "paper", BETTER_HALF, 3),
    ],
)
def test_published_window_needs_paper_scale(corpus: str, scale: str, window: str, n: int) -> None:
    frame = make_frame([56.5, 56.6, 57.0, 57.2, 57.6, 57.61])
    lines = lines_of(correlate(frame, corpus=corpus, scale=scale))
    all_cells, inside = lines[CELLS], lines[window]
    assert (all_cells.n, inside.n) == (6, n)
    assert (all_cells.published_ptb, inside.published_ptb) == (0.48, 0.24)
    chosen = frame[frame["test_perplexity"].between(inside.window_low, inside.window_high)]
    r = np.corrcoef(chosen.press_rank, chosen.test_perplexity)[0, 1]
    assert len(chosen) == n and inside.pearson == pytest.approx(r)


def test_missing_results_are_counted() -> None:
    states = ["done"] * 4 + ["failed", "diverged", "diverged", "planned", "running"]
    numbers = correlate(make_frame([1.0] * 4 + [math.nan] * 5, states=states))
    assert lines_of(numbers)[CELLS].n == 4
    assert numbers.left_out == (
        "1 of 9 trials failed, 2 of 9 trials diverged, 2 of 9 trials have not finished"
    )
    unmeasured = correlate(make_frame([1.0, 2.0, 3.0]).drop(columns="press_rank"))
    [only] = rows(unmeasured.lines)
    assert only.pearson is None and "but there are 0" in only.missing
    assert unmeasured.left_out == "3 of 3 trials have no value of one or both metrics"


def grid_frame(seeds: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    rows = [
        {
            "state": "done",
            "group": f"gss c={c:g} k={k:g}",
            "c": c,
            "k": k,
            "seed": seed,
            "press_rank": 40 + 30 * k + 5 * c**2 + rng.normal(0, 8),
            "test_perplexity": 120 - 4 * k + c**2 + rng.normal(0, 1.5),
        }
        for seed, c, k in itertools.product(
            range(seeds), (-2.0, -1.0, 0.0, 1.0, 2.0), (1.0, 2.0, 3.0, 4.0)
        )
    ]
    if seeds > 1:
        rows[-20] |= {"state": "running", "press_rank": math.nan, "test_perplexity": math.nan}
    return pd.DataFrame(rows)


def numbers_of(frame: pd.DataFrame) -> CorrelationNumbers:
    return correlation_numbers(frame, REQUEST, corpus="pydocs", scale="quick", grid=("c", "k"))


def test_seeds_correlate_by_cell_means() -> None:
    frame = grid_frame()
    numbers, trials = numbers_of(frame), frame.dropna()
    means = trials.groupby("group", sort=False)[["press_rank", "test_perplexity"]].mean()
    all_cells = lines_of(numbers)[CELLS]
    assert (all_cells.n, all_cells.seeds_least, all_cells.seeds_most) == (20, 2, 3)
    assert all_cells.pearson == pytest.approx(np.corrcoef(means.T)[0, 1], rel=1e-12)
    half = 1.959963984540054 / math.sqrt(20 - 3)
    high = math.tanh(math.atanh(all_cells.pearson) + half)
    assert all_cells.independent_high == pytest.approx(high), "20 cells, not 59 trials"
    assert all_cells.pearson_high not in (None, high) and all_cells.pearson_df is None
    cells = numbers.cells
    assert list(cells["group"]) == list(means.index) and list(cells["seeds"]) == [2, *[3] * 19]
    assert numbers.colour_by == "k"
    common = trials[trials["group"] != means.index[0]].groupby("seed")["press_rank"].mean()
    residuals = frame["press_rank"] - frame["seed"].map(common)
    spread = residuals.groupby(frame["group"], sort=False).std(ddof=1)
    assert list(cells["press_rank_sd"]) == pytest.approx(list(spread))


def test_single_trials_have_no_interval() -> None:
    frame = grid_frame()
    numbers = numbers_of(frame)
    lines, trials = lines_of(numbers), frame.dropna()
    single, within = lines[SINGLE], lines[WITHIN]
    expected = np.corrcoef(trials["press_rank"], trials["test_perplexity"])[0, 1]
    assert (single.n, single.pearson) == (59, pytest.approx(expected))
    assert single.pearson_low is single.pearson_p is single.spearman_low is None
    assert "not independent" in single.missing
    components = numbers.components.set_index("metric")
    assert components.loc["press_rank", "variance_seed_in_one_cell"] == pytest.approx(64, rel=0.5)
    assert within.pearson_low < 0 < within.pearson_high


@pytest.mark.parametrize("seeds", [1, 3])
def test_controls_may_omit_settings(seeds: int) -> None:
    """Expected values come from a regression's residuals.

    The effect of c is quadratic, so a straight line cannot remove it.
    """
    numbers = numbers_of(grid_frame(seeds))
    assert list(numbers.partials["left_out"]) == ["c", "k", "c k"]
    for partial in rows(numbers.partials):
        for term, r in (("{}", partial.line), ("C({})", partial.levels)):
            formula = " + ".join(map(term.format, partial.left_out.split()))
            residuals = [
                smf.ols(f"{metric} ~ {formula}", numbers.cells).fit().resid
                for metric in ("press_rank", "test_perplexity")
            ]
            assert r == pytest.approx(np.corrcoef(residuals)[0, 1], rel=1e-9)
        assert partial.line_df == partial.levels_df == 4, "five values of c"
    assert numbers.components.empty == (seeds == 1)


def defined(noise_seed: int = 2) -> CorrelationNumbers:
    frame, rng = grid_frame(), np.random.default_rng(noise_seed)
    frame["centred_press_rank"] = frame["test_perplexity"] * 2 + rng.normal(size=len(frame))
    frame["entropy_rank"] = rng.normal(size=len(frame))
    request = replace(REQUEST, definitions=("press_rank", "entropy_rank", "kl_rank_1e-2"))
    return correlation_numbers(frame, request, corpus="pydocs", scale="quick", grid=("c", "k"))


def test_every_definition_has_a_correlation() -> None:
    numbers = defined()
    press, centred, entropy = rows(numbers.definitions)
    assert (press.x, centred.x, entropy.x) == ("press_rank", "centred_press_rank", "entropy_rank")
    lines = lines_of(numbers)
    assert (press.pearson_low, press.within_low) == (
        lines[CELLS].pearson_low,
        lines[WITHIN].pearson_low,
    )
    means = numbers.points.groupby("group")[["centred_press_rank", "test_perplexity"]].mean()
    assert centred.pearson == pytest.approx(np.corrcoef(means.T)[0, 1])
    assert centred.holm_p == pytest.approx(3 * centred.pearson_p)


def test_holm_family_has_every_value() -> None:
    definitions = pd.concat([one.definitions for one in adjust_together([defined(), defined(3)])])
    _, expected, _, _ = multipletests(list(definitions["pearson_p"]), method="holm")
    assert list(definitions["holm_p"]) == pytest.approx(list(expected))
