"""Windows, published values and what is missing."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from orchestrator.analysis import adjust_together
from orchestrator.analysis.correlations import (
    NOT_INDEPENDENT,
    ComparedCorrelation,
    CorrelationNumbers,
    correlation_numbers,
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
) -> tuple[ComparedCorrelation, ...]:
    return correlation_numbers(frame, REQUEST, corpus=corpus, scale=scale).lines


def test_the_published_window_holds_at_paper_scale_both_ends_inside() -> None:
    frame = make_frame([56.5, 56.6, 57.0, 57.2, 57.6, 57.61])
    everything, inside = correlate(frame, scale="paper")
    assert (everything.n, inside.n) == (6, 4)
    assert inside.window is not None and inside.window.origin == "published"
    assert inside.pearson.value == pytest.approx(
        np.corrcoef(frame.press_rank[1:5], frame.test_perplexity[1:5])[0, 1]
    )


@pytest.mark.parametrize(("corpus", "scale"), [("ptb", "quick"), ("pydocs", "paper")])
def test_elsewhere_the_window_is_the_better_half_with_its_bounds(corpus: str, scale: str) -> None:
    frame = make_frame([210.0, 190.0, 200.0, 230.0, 220.0, 240.0])
    _, inside = correlate(frame, corpus=corpus, scale=scale)
    assert inside.window is not None
    assert (inside.window.low, inside.window.high, inside.window.origin) == (
        190.0,
        215.0,
        "better half",
    )
    assert inside.n == 3


def test_trials_without_a_result_are_left_out_and_counted() -> None:
    states = [
        "done",
        "done",
        "done",
        "done",
        "failed",
        "diverged",
        "diverged",
        "planned",
        "running",
    ]
    everything, _ = correlate(make_frame([1.0] * 4 + [math.nan] * 5, states=states))
    assert everything.n == 4
    assert (
        everything.missing
        == "1 of 9 trials failed, 2 of 9 trials diverged, 2 of 9 trials not finished"
    )


def test_a_metric_that_nobody_measured_gives_words_not_an_error() -> None:
    frame = make_frame([1.0, 2.0, 3.0]).drop(columns="press_rank")
    (only,) = correlate(frame)
    assert only.pearson.value is None and "got 0" in only.pearson.missing
    assert only.missing == "3 of 3 trials without a value of both metrics"


def grid_frame(seeds: int = 3) -> pd.DataFrame:
    """Cells of c and k with so many seeds, the last one of which is still running in the first
    cell."""
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


def test_several_seeds_are_correlated_by_their_cells_means_and_windowed_by_them() -> None:
    frame = grid_frame()
    numbers = numbers_of(frame)
    means: dict[str, list[list[float]]] = {}
    for row in frame.dropna().to_dict("records"):
        means.setdefault(row["group"], []).append([row["press_rank"], row["test_perplexity"]])
    points = np.array([np.mean(values, axis=0) for values in means.values()])
    everything, inside = numbers.lines
    assert (everything.n, everything.seeds, inside.n) == (20, (2, 3), 10)
    assert everything.pearson.value == pytest.approx(np.corrcoef(points.T)[0, 1], rel=1e-12)
    independent = everything.independent
    assert independent is not None and independent.interval is not None
    half = 1.959963984540054 / math.sqrt(20 - 3)
    high = math.tanh(math.atanh(everything.pearson.value or 0) + half)
    assert independent.interval.high == pytest.approx(high), "20 cells, not 59 trials"
    assert (
        everything.pearson.interval not in (None, independent.interval)
        and everything.pearson.df is None
    )
    better = points[points[:, 1] <= np.median(points[:, 1])]
    assert inside.pearson.value == pytest.approx(np.corrcoef(better.T)[0, 1], rel=1e-12)
    assert list(numbers.cells["group"]) == list(means) and list(numbers.cells["seeds"]) == [
        2,
        *[3] * 19,
    ]
    rows = frame.dropna().to_dict("records")
    whole = [row for row in rows if len(means[row["group"]]) == 3]
    common = {
        seed: np.mean([row["press_rank"] for row in whole if row["seed"] == seed])
        for seed in range(3)
    }
    rests: dict[str, list[float]] = {}
    for row in rows:
        rests.setdefault(row["group"], []).append(row["press_rank"] - common[row["seed"]])
    spread = [np.std(values, ddof=1) for values in rests.values()]
    assert list(numbers.cells["press_rank_sd"]) == pytest.approx(spread)
    assert numbers.colour_by == "k"


def test_single_trials_have_a_correlation_and_no_interval() -> None:
    frame = grid_frame()
    seeds = numbers_of(frame).seeds
    assert seeds is not None and seeds.trials == 59
    rows = frame.dropna()
    assert seeds.pearson.value == pytest.approx(
        np.corrcoef(rows["press_rank"], rows["test_perplexity"])[0, 1]
    )
    for single in (seeds.pearson, seeds.spearman):
        assert (single.interval, single.p_value, single.missing) == (None, None, NOT_INDEPENDENT)
    assert set(seeds.components) == {"press_rank", "test_perplexity"}
    assert seeds.components["press_rank"].rest == pytest.approx(64, rel=0.5)
    assert seeds.within.interval is not None and 0 in seeds.within.interval


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_setting_is_left_out_by_its_levels_and_as_a_straight_line(seeds: int) -> None:
    """By the residuals of a regression on the cells' means; c acts by its square, which no line
    takes away."""
    numbers = numbers_of(grid_frame(seeds))
    cells = numbers.cells
    ours = {partial.settings: partial for partial in numbers.partials}
    assert list(ours) == [("c",), ("k",), ("c", "k")]
    for settings, partial in ours.items():
        lines = [np.ones(20), *(cells[name] for name in settings)]
        levels = [cells[name] == value for name in settings for value in cells[name].unique()]
        for columns, statistic in ((lines, partial.line), (levels, partial.levels)):
            design = np.array(columns, dtype=float).T
            rest = [
                cells[name] - design @ np.linalg.pinv(design) @ cells[name]
                for name in ("press_rank", "test_perplexity")
            ]
            assert statistic.value == pytest.approx(np.corrcoef(rest)[0, 1], rel=1e-9)
            assert statistic.df == 4, "five values of c"
    assert (numbers.seeds is None) == (seeds == 1)


def test_a_cell_whose_trials_have_no_result_is_no_point() -> None:
    frame = grid_frame()
    frame.loc[frame["group"] == "gss c=0 k=2", "state"] = "failed"
    numbers = numbers_of(frame)
    assert numbers.lines[0].n == 19 and "3 of 60 trials failed" in numbers.lines[0].missing


def defined(noise_seed: int = 2) -> CorrelationNumbers:
    """Three definitions of rank, one of them of centred rows, and one that no trial has."""
    frame, rng = grid_frame(), np.random.default_rng(noise_seed)
    frame["centred_press_rank"] = frame["test_perplexity"] * 2 + rng.normal(size=len(frame))
    frame["entropy_rank"] = rng.normal(size=len(frame))
    request = replace(REQUEST, definitions=("press_rank", "entropy_rank", "kl_rank_1e-2"))
    return correlation_numbers(frame, request, corpus="pydocs", scale="quick", grid=("c", "k"))


def test_every_measured_definition_of_rank_has_its_correlation() -> None:
    numbers = defined()
    press, centred, entropy = numbers.definitions
    assert (press.x, centred.x, entropy.x) == ("press_rank", "centred_press_rank", "entropy_rank")
    assert press.pearson == numbers.lines[0].pearson and numbers.seeds is not None
    assert press.within == numbers.seeds.within
    means = numbers.points.groupby("group")[["centred_press_rank", "test_perplexity"]].mean()
    assert centred.pearson.value == pytest.approx(np.corrcoef(means.T)[0, 1])
    assert centred.p_adjusted == pytest.approx(3 * (centred.pearson.p_value or 0))


def test_holms_family_has_every_swept_value() -> None:
    both = adjust_together([defined(), defined(3)])
    lines = [line for numbers in both for line in numbers.definitions]
    p_values = [line.pearson.p_value for line in lines]
    _, expected, _, _ = multipletests(p_values, method="holm")
    assert [line.p_adjusted for line in lines] == pytest.approx(list(expected))
