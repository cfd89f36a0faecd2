"""The width at which made-up gaps reach a value, against the one they were made with, and the law
that was planted."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import ArrayLike, NDArray

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.statistics.power_law import Curve, curves_over_seeds
from orchestrator.analysis.thresholds import (
    ThresholdNumbers,
    ThresholdPoint,
    least_x,
    number_in,
    threshold_numbers,
)
from search_spaces.laws import Threshold
from tests.support.laws_and_settings import LEARNED_AT as REQUEST
from tests.support.laws_and_settings import spam_rows
from tests.support.synthetic_results import fail

Array = NDArray[np.float64]
FACTORS = {"softmax": 1.0, "mos": 1.0, "softcap": 1.5}
WIDTHS = np.repeat([8.0, 12, 16, 24], 2)


def numbers_of(rows: list[dict[str, Any]], request: Threshold = REQUEST) -> ThresholdNumbers:
    numbers = threshold_numbers(flatten(rows).frame(), request)
    assert numbers is not None
    return numbers


def point_at(numbers: ThresholdNumbers, group: str, z: float) -> ThresholdPoint:
    [point] = [point for point in numbers.points if (point.group, point.z) == (group, z)]
    return point


def curve_of(x: ArrayLike, y: ArrayLike) -> Curve:
    """One curve, each place with the seeds 0 and 1."""
    alone = [None] * len(np.asarray(x))
    return curves_over_seeds(x, y, [i % 2 for i in range(len(alone))], groups=alone, parts=alone)[
        None, None
    ]


def by_hand(x: Array, y: Array, level: float) -> float:
    """Place by place: the first one at or below the level, and the line from the one before."""
    for place, height in enumerate(y):
        if height <= level:
            heights, logs = np.array([height, y[place - 1]]), np.log([x[place], x[place - 1]])
            return float(np.exp(np.interp(level, heights, logs))) if place else 0.0
    return math.inf


def test_a_threshold_is_where_the_line_between_two_places_first_comes_down_to_it() -> None:
    rng = np.random.default_rng(0)
    for level, never in ((-1.0, math.inf), (0.0, math.nan), (1.5, 0.0)):
        y = -3 * np.log(WIDTHS / 14) + rng.normal(0, 1, len(WIDTHS))
        curve = curve_of(WIDTHS, y)
        expected = [by_hand(curve.x_R, y_R, level) for y_R in curve.mean_BR]
        assert (never in expected) != math.isnan(never) and np.isfinite(expected).any()
        assert least_x(curve, level) == pytest.approx(expected, rel=1e-12)
    assert least_x(curve_of([8.0], [0.0]), 1.0) == [0.0]
    assert least_x(curve_of([8.0], [2.0]), 1.0) == [math.inf]


def test_each_layer_has_the_width_and_the_exponent_that_its_gaps_were_made_with() -> None:
    numbers = numbers_of(spam_rows(FACTORS))
    assert [(point.z, point.group) for point in numbers.points] == [
        (z, group) for z in (500, 1000, 2000, 4000) for group in FACTORS
    ]
    for point in numbers.points:
        truth = FACTORS[point.group] * point.z**0.4
        assert point.trials == 15 and point.places == (4, 8, 16, 32, 64) and point.is_reached
        assert point.x.value == pytest.approx(truth, rel=0.03) and point.x.interval is not None
        assert point.x.interval.low * 0.99 < truth < point.x.interval.high * 1.01
    for law in numbers.laws:
        assert law.fitted == (500, 1000, 2000, 4000) and law.missing == ""
        assert (
            law.exponent.value == pytest.approx(0.4, abs=0.02) and law.exponent.interval is not None
        )
        slope, intercept = np.polyfit(
            np.log(law.fitted),
            [math.log(point_at(numbers, law.group, z).x.value or 0) for z in law.fitted],
            1,
        )
        assert (law.exponent.value, law.log_factor.value) == pytest.approx(
            (slope, intercept), rel=1e-9
        )
        misses = [
            abs(math.log(law.at(z) / (point_at(numbers, law.group, z).x.value or 0)))
            for z in law.fitted
        ]
        assert law.off == pytest.approx(math.exp(max(misses)), rel=1e-9) and max(misses) < 0.05


def test_a_layer_that_needs_half_as_much_again_is_told_and_one_that_needs_the_same_is_not() -> None:
    numbers = numbers_of(spam_rows(FACTORS))
    tested = [point for point in numbers.points if point.ratio is not None]
    assert {point.group for point in tested} == {"mos", "softcap"} and len(tested) == 8
    for point in tested:
        assert point.ratio is not None and point.p_adjusted is not None
        assert point.ratio.value == pytest.approx(FACTORS[point.group], rel=0.05)
        assert (point.p_adjusted < 0.05) == (point.group == "softcap")


def test_a_perplexity_is_held_against_the_value_as_it_is() -> None:
    """exp(0.1) times that of the language, at one V, where its gap is 0.1."""
    rows = spam_rows({"softmax": 1.0}, symbols=(1000,))
    request = replace(REQUEST, metric="test_perplexity", value=math.exp(math.log(1000) / 8 + 0.1))
    [point] = numbers_of(rows, request).points
    assert point.x.value == pytest.approx(
        point_at(numbers_of(rows), "softmax", 1000).x.value, rel=0.05
    )


def test_a_ratio_to_a_layer_without_seeds_has_no_interval() -> None:
    rows = spam_rows({"softmax": 1.0, "softcap": 1.5})
    some = [
        row
        for row in rows
        if row["config"]["output_layer"]["name"] == "softmax" or row["config"]["seed"] == 1
    ]
    ratios = [point.ratio for point in numbers_of(some).points if point.group == "softcap"]
    assert len(ratios) == 4
    for ratio in ratios:
        assert ratio is not None and ratio.value is not None and 1.3 < ratio.value < 1.7
        assert ratio.interval is None and ratio.p_value is None


def test_names_that_end_in_one_number_are_one_setting() -> None:
    rows = spam_rows({"softmax": 1.0}, symbols=(1000,))
    others = [
        {
            **row,
            "trial_id": f"{place:064x}",
            "config": {**row["config"], "corpus": {"name": "markov-1000"}},
        }
        for place, row in enumerate(rows)
    ]
    [point] = numbers_of(
        rows + others, replace(REQUEST, metric="test_perplexity", value=2.5)
    ).points
    assert point.trials == 2 * len(rows)


def test_what_is_below_the_least_width_or_beyond_the_largest_is_in_no_law() -> None:
    rows = spam_rows(
        {"softmax": 1.0}, symbols=(100, 500, 1000, 2000, 100_000), widths=(8, 16, 32, 64)
    )
    numbers = numbers_of(rows)
    assert [point.x.value for point in (numbers.points[0], numbers.points[-1])] == [0.0, math.inf]
    assert not numbers.points[0].is_reached and not numbers.points[-1].is_reached
    assert numbers.laws[0].fitted == (500, 1000, 2000) and numbers.laws[0].missing == ""
    [law] = numbers_of([row for row in rows if row["config"]["corpus"]["name"] != "spam-500"]).laws
    assert (
        law.missing.endswith("needs 3 or more at which the value is reached, and there are 2")
        and law.exponent.value is None
    )


def test_an_end_of_an_interval_may_be_below_the_least_width_and_then_the_law_has_none() -> None:
    """At V = 510 the width is 12.1, and many a draw is below 12, the least one that was trained."""
    numbers = numbers_of(
        spam_rows({"softmax": 1.0}, symbols=(510, 1000, 2000, 4000), widths=(12, 24, 48))
    )
    interval, law = numbers.points[0].x.interval, numbers.laws[0]
    assert numbers.points[0].is_reached and interval is not None
    assert interval.low == 0.0 and 12.1 < interval.high < 13
    assert law.fitted[0] == 510 and law.exponent.value == pytest.approx(0.4, abs=0.03)
    assert (
        law.exponent.interval is None and "of the draws have no such number" in law.exponent.missing
    )


def test_single_seeds_take_their_spread_from_others_and_without_any_there_is_no_interval() -> None:
    rows = spam_rows({"softmax": 1.0})
    some = [
        row
        for row in rows
        if row["config"]["seed"] == 1 or row["config"]["corpus"]["name"] == "spam-500"
    ]
    several, single = (numbers_of(some).points[place].x.interval for place in (0, 1))
    assert several is not None and single is not None
    assert single.high / single.low > several.high / several.low
    alone = numbers_of([row for row in rows if row["config"]["seed"] == 1])
    assert all(point.x.value and point.x.interval is None for point in alone.points)
    assert alone.laws[0].exponent.value and alone.laws[0].exponent.interval is None


def test_a_gap_below_zero_is_a_small_one_and_failures_and_other_names_are_left_out() -> None:
    rows = spam_rows({"softmax": 1.0}, seeds=1)
    learned = [row for row in rows if row["config"]["model"]["embedding_width"] == 64]
    for row in learned:
        number = int(row["config"]["corpus"]["name"].removeprefix("spam-"))
        row["metrics"]["test_perplexity"] = math.exp(math.log(number) / 8 - 0.01)
    assert all(point.is_reached for point in numbers_of(rows).points)
    numbers = numbers_of(
        [fail(row, state="failed", cause="") if row in learned else row for row in rows]
    )
    assert all(point.places == (4, 8, 16, 32) for point in numbers.points)
    frame = flatten([fail(row, state="failed", cause="") for row in rows]).frame()
    assert (
        threshold_numbers(frame, REQUEST) is None
        and threshold_numbers(frame[["name"]], REQUEST) is None
    )
    assert [number_in(value) for value in ("spam-1000", 64, 2.5, "ptb", 0, None, math.nan)] == [
        1000, 64, 2.5, None, None, None, None,
    ]  # fmt: skip
