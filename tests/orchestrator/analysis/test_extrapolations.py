"""Sizes whose losses were put off the law of larger ones are those that are named."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from orchestrator.analysis.extrapolations import (
    ExtrapolationNumbers,
    HeldOut,
    extrapolation_numbers,
)
from orchestrator.analysis.frames import flatten
from search_spaces.laws import Extrapolation
from tests.support.laws_and_settings import width_rows
from tests.support.synthetic_results import trial_row

REQUEST = Extrapolation(x="model.width")


def numbers_of(
    rows: list[dict[str, Any]], request: Extrapolation = REQUEST
) -> ExtrapolationNumbers:
    numbers = extrapolation_numbers(flatten(rows).frame(), request)
    assert numbers is not None
    return numbers


def test_losses_on_one_law_are_not_told_apart_from_it() -> None:
    numbers = numbers_of(width_rows({}))
    assert [line.x for line in numbers.held_out] == [32, 16, 8]
    assert [line.fitted for line in numbers.held_out] == [4, 5, 6]
    assert numbers.first is None and len(numbers.fitted) == 7
    assert all(
        line.difference.interval and 0.0 in line.difference.interval for line in numbers.held_out
    )
    assert numbers.fit.limit.interval and 3.5 in numbers.fit.limit.interval


def test_the_first_size_off_the_law_is_named_and_those_below_are_held_against_the_law_above_it() -> (
    None
):
    numbers = numbers_of(width_rows({16: 0.3, 8: 0.8}))
    line = numbers.held_out[1]
    assert numbers.first == line and line.leaves == 1 and line.x == 16
    assert line.difference.value == pytest.approx(0.3, abs=0.1)
    assert line.difference.p_value is not None and line.p_adjusted == pytest.approx(
        3 * line.difference.p_value
    )
    assert numbers.fitted == (32, 64, 96, 128, 192) and numbers.held_out[2].fitted == 5
    assert numbers.held_out[2].leaves == 1
    # The band reaches down to where it is extrapolated, and the points are those of all sizes.
    assert numbers.fit.band[0][0] == pytest.approx(8) and numbers.fit.points[0].x == 8


def test_a_loss_below_the_law_is_told_with_its_sign() -> None:
    numbers = numbers_of(width_rows({8: -0.6}))
    assert numbers.first is not None and numbers.first.leaves == -1 and numbers.first.x == 8


def test_most_detectable_excesses_are_found() -> None:
    """Eight is off by the distance that its own tests report in the mean, over and over with new
    seeds."""

    def line_of_eight(seed: int, off: float) -> HeldOut:
        return numbers_of(width_rows({8: off}, seed=seed)).held_out[-1]

    distances = [line_of_eight(seed, 0.0).detectable for seed in range(6)]
    assert None not in distances
    distance = np.mean(np.array(distances, dtype=float))
    found = np.mean([line_of_eight(seed, distance).leaves == 1 for seed in range(20, 40)])
    missed = np.mean([line_of_eight(seed, distance / 3).leaves == 1 for seed in range(20, 40)])
    assert found > 0.5 and missed < 0.4


def test_too_few_sizes_and_single_seeds_say_what_is_missing() -> None:
    few = numbers_of(width_rows({}, widths=(8, 16, 32, 64)))
    assert (
        few.held_out == () and "there are 4 in all" in few.fit.missing and len(few.fit.points) == 4
    )
    single = numbers_of(width_rows({}, seeds=1))
    assert all(
        line.difference.value is not None and line.p_adjusted is None for line in single.held_out
    )
    assert all(line.leaves == 0 for line in single.held_out)
    assert extrapolation_numbers(flatten([trial_row("a", press_rank=3)]).frame(), REQUEST) is None
