from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import RankTrainingNumbers, flatten, rank_training_numbers, rows
from search_spaces.study import RankOverTraining
from tests.support.synthetic_results import done_trial, training
from trainables.trial_folder import EpochMetrics

Epochs = Mapping[str, Sequence[EpochMetrics]]


def frame_of(epochs: Epochs, **config: Any) -> pd.DataFrame:
    rows = [done_trial(name.partition(" ")[0], int(name.rpartition("=")[2])) for name in epochs]
    return flatten([row | {"config": row["config"] | config} for row in rows]).frame()


def numbers_of(
    epochs: Epochs, frame: pd.DataFrame | None = None, colours: Sequence[str] = ()
) -> RankTrainingNumbers:
    frame = frame_of(epochs) if frame is None else frame
    numbers = rank_training_numbers(frame, epochs, RankOverTraining(), colours=colours)
    assert numbers is not None
    return numbers


def press(numbers: RankTrainingNumbers) -> Any:
    return next(rows(numbers.ranks))


def halves(numbers: RankTrainingNumbers) -> list[float]:
    first = next(rows(numbers.epochs))
    return [first.rank_half_epoch, first.log_perplexity_half_epoch]


@pytest.mark.parametrize("averaged", [False, True])
def test_half_way_is_interpolated(averaged: bool) -> None:
    """Half-way points are interpolated between epochs.

    Above the first rank, the base-2 logarithms of the ranks are 0, 1 and 4, so they reach 2 at
    epoch 2 + 1 / 3. The losses are 9, 6 and 5, so they reach 7 at epoch 1 + 2 / 3.
    """
    ranks, losses = (10, 20, 160, 900), (9.0, 6.0, 5.0, 4.0)
    plain = training(ranks[:3], losses[:3])
    path = training(ranks, losses, averaged_from=4) if averaged else plain
    assert halves(numbers_of({"a seed=1": path})) == pytest.approx([2 + 1 / 3, 1 + 2 / 3])


def test_half_ways_count_settings() -> None:
    ways = {
        **{f"first{i} seed=1": ((10, 80, 160), (9, 7.5, 5)) for i in range(6)},
        "second seed=1": ((10, 20, 160), (9, 6, 5)),
        "same seed=1": ((10, 40, 160), (9, 7, 5)),
        "still seed=1": ((10, 11, 10), (9, 6, 5)),
    }
    rank = press(numbers_of({name: training(*way) for name, way in ways.items()}))
    assert (rank.rank_earlier, rank.compared, rank.settings) == (6, 8, 9)


def test_setting_is_geometric_mean() -> None:
    paths = (((10, 40, 90), (3, 2, 1)), ((40, 40, 10), (5, 4, 2)))
    epochs = {f"a seed={seed}": training(*path) for seed, path in enumerate(paths)}
    means = numbers_of(epochs).epochs[:3]
    assert list(means["mean_rank"]) == pytest.approx([20, 40, 30])
    assert list(means["mean_valid_perplexity"]) == pytest.approx(np.exp([4, 3, 1.5]))


def test_incomplete_trials_are_excluded() -> None:
    good = training((10, 20, 30), (3, 2, 1))
    holes = [*good[:2], good[2].model_copy(update={"press_rank": None})]
    epochs = {
        "good seed=1": good,
        "holes seed=1": holes,
        "zero seed=1": training((10, 0, 30), (3, 2, 1)),
        "failed seed=1": good,
    }
    frame = frame_of({**epochs, "none seed=1": ()})
    frame.loc[frame["group"] == "failed", "state"] = "diverged"
    by_rank = numbers_of(epochs, frame).epochs.groupby("rank")["group"].agg(set).to_dict()
    assert by_rank == {"press_rank": {"good"}, "entropy_rank": {"good", "holes", "zero"}}
    request = RankOverTraining(ranks=("press_rank",))
    assert rank_training_numbers(frame, {"holes seed=1": holes}, request) is None


AT_64 = {
    "a seed=1": training((10, 64, 64), (3, 2, 1)),
    "b seed=1": training((10, 20, 64), (3, 2, 1)),
}


@pytest.mark.parametrize(
    ("evaluation", "words", "bound", "at_bound"),
    [
        ({"epoch_rank_contexts": 64}, 512, 64, 3),
        ({"epoch_rank_contexts": 512}, 64, 64, 3),
        ({"epoch_rank_contexts": 512, "valid_tokens": 64}, None, 64, 3),
        ({}, [64, 300], None, 2),
        ({}, None, None, 0),
    ],
)
def test_epochs_at_bound_are_counted(
    evaluation: dict[str, int], words: int | list[int] | None, bound: int | None, at_bound: int
) -> None:
    frame = frame_of(AT_64, evaluation=evaluation).assign(rank_columns=words)
    rank = press(numbers_of(AT_64, frame))
    assert (rank.bound, rank.at_bound, rank.measured) == (bound, at_bound, 6)


@pytest.mark.parametrize(
    ("columns", "colour_by", "colours"),
    [(["absent", "model.name", "c", "seed", "k"], "k", {1.0, 2.0}), (["c", "seed"], "", {None})],
)
def test_shared_number_colours_settings(
    columns: list[str], colour_by: str, colours: set[float | None]
) -> None:
    names = ("a seed=1", "a seed=2", "b seed=1")
    epochs = dict.fromkeys(names, training((10, 20, 30), (3, 2, 1)))
    frame = frame_of(epochs, model={"name": "x"})
    frame = frame.assign(c=[0.5, 0.5, math.nan], k=[1.0, 1.0, 2.0])
    numbers = numbers_of(epochs, frame, columns)
    assert (numbers.colour_by, set(numbers.epochs["colour"])) == (colour_by, colours)
