from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

from orchestrator.analysis import (
    ExtrapolationNumbers,
    curves_over_seeds,
    extrapolation_numbers,
    flatten,
    rows,
)
from search_spaces.laws import Extrapolation
from tests.support.laws_and_settings import width_rows
from tests.support.synthetic_results import trial_row

REQUEST = Extrapolation(x="model.width")


def numbers_of(results: list[dict[str, Any]]) -> ExtrapolationNumbers:
    numbers = extrapolation_numbers(flatten(results).frame(), REQUEST)
    assert numbers is not None
    return numbers


def test_losses_on_law_stay_on_it() -> None:
    numbers = numbers_of(width_rows({}))
    assert list(numbers.held_out["x"]) == [32, 16, 8] and not any(numbers.held_out["leaves"])
    assert list(numbers.held_out["fitted_to"]) == [4, 5, 6] and len(numbers.fitted) == 7
    assert all(line.difference_low < 0.0 < line.difference_high for line in rows(numbers.held_out))
    [fit] = rows(numbers.laws.fits)
    assert fit.E_low < 3.5 < fit.E_high


def test_small_sizes_use_larger_law() -> None:
    numbers = numbers_of(width_rows({16: 0.3, 8: 0.8}))
    zeroth, first, last = rows(numbers.held_out)
    assert (zeroth.leaves, first.leaves, last.leaves) == (0, 1, 1) and first.x == 16
    assert first.difference == pytest.approx(0.3, abs=0.1)
    assert first.bonferroni_p == pytest.approx(3 * first.p)
    assert numbers.fitted == (32, 64, 96, 128, 192) and last.fitted_to == 5
    assert numbers.laws.points["x"][0] == 8


def test_loss_below_law_is_negative() -> None:
    last = list(rows(numbers_of(width_rows({8: -0.6})).held_out))[-1]
    assert last.leaves == -1 and last.x == 8


def test_most_detectable_excesses_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The losses at size 8 are shifted by the distance that the analysis reports as detectable."""
    few_draws = partial(curves_over_seeds, resamples=1_999)
    monkeypatch.setattr("orchestrator.analysis.extrapolations.curves_over_seeds", few_draws)

    def line_of_eight(seed: int, off: float) -> Any:
        return list(rows(numbers_of(width_rows({8: off}, seed=seed)).held_out))[-1]

    distance = np.mean([line_of_eight(seed, 0.0).detectable for seed in range(6)])
    power = np.mean([line_of_eight(seed, distance).leaves == 1 for seed in range(20, 40)])
    missed = np.mean([line_of_eight(seed, distance / 3).leaves == 1 for seed in range(20, 40)])
    assert power > 0.5 and missed < 0.4


def test_too_few_sizes_or_seeds() -> None:
    few = numbers_of(width_rows({}, widths=(8, 16, 32, 64)))
    assert few.held_out.empty and len(few.laws.points) == 4
    assert "but there are 4" in few.laws.fits["missing"][0]
    for line in rows(numbers_of(width_rows({}, seeds=1)).held_out):
        assert line.difference is not None and line.bonferroni_p is None and line.leaves == 0
    assert extrapolation_numbers(flatten([trial_row("a", press_rank=3)]).frame(), REQUEST) is None
