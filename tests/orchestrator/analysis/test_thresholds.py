"""Expected values come from the power law that generates the synthetic losses."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import ArrayLike, NDArray

from orchestrator.analysis import (
    Curve,
    ThresholdNumbers,
    curves_over_seeds,
    flatten,
    is_reached,
    rows,
    threshold_numbers,
)
from orchestrator.analysis.thresholds import least_x, number_in
from search_spaces.laws import Threshold
from tests.support.laws_and_settings import LEARNED_AT as REQUEST
from tests.support.laws_and_settings import spam_rows
from tests.support.synthetic_results import fail

Array = NDArray[np.float64]
FACTORS = {"softmax": 1.0, "mos": 1.0, "softcap": 1.5}
WIDTHS = np.repeat([8.0, 12, 16, 24], 2)


def numbers_of(results: list[dict[str, Any]], request: Threshold = REQUEST) -> ThresholdNumbers:
    numbers = threshold_numbers(flatten(results).frame(), request)
    assert numbers is not None
    return numbers


def points_of(results: list[dict[str, Any]], request: Threshold = REQUEST) -> list[Any]:
    return list(rows(numbers_of(results, request).points))


def curve_of(x: ArrayLike, y: ArrayLike) -> Curve:
    trials = pd.DataFrame({"x": x, "loss": y}).assign(panel=None, group=None)
    return curves_over_seeds(trials.assign(seed=trials.index % 2))[None, None]


def by_hand(x: Array, y: Array, level: float) -> float:
    for index, height in enumerate(y):
        if height <= level:
            heights, logs = np.array([height, y[index - 1]]), np.log([x[index], x[index - 1]])
            return float(np.exp(np.interp(level, heights, logs))) if index else 0.0
    return math.inf


def test_least_x_is_interpolated() -> None:
    rng = np.random.default_rng(0)
    for level, never in ((-1.0, math.inf), (0.0, math.nan), (1.5, 0.0)):
        y = -3 * np.log(WIDTHS / 14) + rng.normal(0, 1, len(WIDTHS))
        curve = curve_of(WIDTHS, y)
        expected = [by_hand(curve.x_R, y_R, level) for y_R in curve.mean_BR]
        assert (never in expected) != math.isnan(never) and np.isfinite(expected).any()
        assert least_x(curve, level) == pytest.approx(expected, rel=1e-12)
    assert least_x(curve_of([8.0], [0.0]), 1.0) == [0.0]
    assert least_x(curve_of([8.0], [2.0]), 1.0) == [math.inf]


def test_planted_widths_are_found() -> None:
    numbers = numbers_of(spam_rows(FACTORS))
    points, symbols = list(rows(numbers.points)), (500, 1000, 2000, 4000)
    assert [(point.z, point.group) for point in points] == list(product(symbols, FACTORS))
    for point in points:
        truth = FACTORS[point.group] * point.z**0.4
        assert (point.trials, point.trained) == (15, "4 8 16 32 64")
        assert point.x == pytest.approx(truth, rel=0.03)
        assert point.x_low * 0.99 < truth < point.x_high * 1.01
        if point.group != "softmax":
            assert point.ratio == pytest.approx(FACTORS[point.group], rel=0.05)
            assert (point.holm_p < 0.05) == (point.group == "softcap")
    for law in rows(numbers.laws):
        assert law.fitted == "500 1000 2000 4000" and law.missing == ""
        assert law.b == pytest.approx(0.4, abs=0.02) and law.b_low < law.b < law.b_high
        log_z = np.log(symbols)
        log_x = np.log([point.x for point in points if point.group == law.group])
        slope, height = np.polyfit(log_z, log_x, 1)
        assert (law.b, law.log_a) == pytest.approx((slope, height), rel=1e-9)
        farthest = max(abs(height + slope * log_z - log_x))
        assert law.farthest_off == pytest.approx(math.exp(farthest), rel=1e-9)


def test_equal_trailing_numbers_share_a_setting() -> None:
    results = spam_rows({"softmax": 1.0}, symbols=(1000,))
    extra_rows = spam_rows({"softmax": 1.0}, symbols=(1000,))
    for row in extra_rows:
        row["config"]["corpus"]["name"] = "markov-1000"
    # A gap of 0.1 means a perplexity of exp(0.1) times that of the language.
    request = replace(REQUEST, metric="test_perplexity", value=math.exp(math.log(1000) / 8 + 0.1))
    [point], [of_gap] = points_of(results + extra_rows, request), points_of(results)
    assert point.trials == 2 * len(results)
    assert point.x == pytest.approx(of_gap.x, rel=0.05)
    names = ("spam-1000", 64, 2.5, "ptb", 0, None, math.nan)
    assert [*map(number_in, names)] == [1000, 64, 2.5, *[None] * 4]


def test_untrained_widths_are_excluded() -> None:
    symbols = (100, 500, 1000, 2000, 100_000)
    results = spam_rows({"softmax": 1.0}, symbols=symbols, widths=(8, 16, 32, 64))
    numbers = numbers_of(results)
    x = list(numbers.points["x"])
    assert (x[0], x[-1]) == (0.0, math.inf) and not is_reached(x[0]) and not is_reached(x[-1])
    assert numbers.laws["fitted"][0] == "500 1000 2000" and numbers.laws["missing"][0] == ""
    subset = [row for row in results if row["config"]["corpus"]["name"] != "spam-500"]
    [law] = rows(numbers_of(subset).laws)
    assert "at least 3 values" in law.missing and law.b is None


def test_interval_may_pass_least_width() -> None:
    """At V = 510 the true width is 12.1.

    Many resampled widths are below 12, the smallest trained width.
    """
    numbers = numbers_of(
        spam_rows({"softmax": 1.0}, symbols=(510, 1000, 2000, 4000), widths=(12, 24, 48))
    )
    point, law = next(rows(numbers.points)), next(rows(numbers.laws))
    assert is_reached(point.x) and point.x_low == 0.0 and 12.1 < point.x_high < 13
    assert law.fitted.startswith("510 ") and law.b == pytest.approx(0.4, abs=0.03)
    assert law.b_low is None and "of the draws" in law.missing


def test_single_seeds_borrow_spread() -> None:
    def single_but_for(corpus: str) -> ThresholdNumbers:
        configs = ((row, row["config"]) for row in spam_rows({"softmax": 1.0, "softcap": 1.5}))
        names = (corpus, "softmax")
        return numbers_of(
            [
                row
                for row, config in configs
                if config["seed"] == 1
                or (config["corpus"]["name"], config["output_layer"]["name"]) == names
            ]
        )

    several_seeds, capped, single, *_ = rows(single_but_for("spam-500").points)
    assert single.x_high / single.x_low > several_seeds.x_high / several_seeds.x_low
    assert 1.3 < capped.ratio < 1.7 and capped.ratio_low is capped.p is None
    alone = single_but_for("")
    assert all(point.x and point.x_low is None for point in rows(alone.points))
    assert all(law.b and law.b_low is None for law in rows(alone.laws))


def test_negative_gaps_and_failures() -> None:
    results = spam_rows({"softmax": 1.0}, seeds=1)
    learned = [row for row in results if row["config"]["model"]["embedding_width"] == 64]
    for row in learned:
        number = number_in(row["config"]["corpus"]["name"])
        row["metrics"]["test_perplexity"] = math.exp(math.log(number or 0) / 8 - 0.01)
    assert all(is_reached(point.x) for point in points_of(results))
    for row in learned:
        row |= fail(row, state="failed", cause="")
    assert all(point.trained == "4 8 16 32" for point in points_of(results))
    failed = [fail(row, state="failed", cause="") for row in results]
    assert threshold_numbers(flatten(failed).frame(), REQUEST) is None
    assert threshold_numbers(flatten(failed).frame()[["name"]], REQUEST) is None
