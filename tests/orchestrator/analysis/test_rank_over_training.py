"""Rank over training: half ways by hand, which trials count and which are left out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
import pytest

from orchestrator.analysis.frames import flatten
from orchestrator.analysis.rank_over_training import RankTraining, rank_training_numbers
from search_spaces.study import RankOverTraining
from tests.support.synthetic_results import done_trial, fail, training
from trainables.trial_folder.outcome import EpochMetrics

Epochs = Mapping[str, Sequence[EpochMetrics]]


def frame_of(epochs: Epochs, **config: Any) -> pd.DataFrame:
    """A done trial for each of these; "a seed=1" is of the group a."""
    rows = [done_trial(name.partition(" ")[0], int(name.rpartition("=")[2])) for name in epochs]
    return flatten([row | {"config": row["config"] | config} for row in rows]).frame()


def numbers_of(epochs: Epochs, **config: Any) -> RankTraining:
    press, *_ = rank_training_numbers(frame_of(epochs, **config), epochs, RankOverTraining())
    return press


def test_half_of_the_way_is_on_straight_lines() -> None:
    """Logarithms by hand: rank 0, 1, 4 of 4, half at epoch 2 + 1 / 3; loss 0, 3, 4 of 4, half at 1
    + 2 / 3."""
    path = numbers_of({"a seed=1": training(ranks=(10, 20, 160), losses=(9.0, 6.0, 5.0))}).paths[0]
    assert (path.rank_half, path.perplexity_half) == pytest.approx((2 + 1 / 3, 1 + 2 / 3))


def test_half_ways_are_counted_by_settings() -> None:
    slow, fast = (10, 20, 160), (10, 80, 160)
    epochs = {f"first{i} seed=1": training(ranks=fast, losses=(9, 7.5, 5)) for i in range(6)}
    epochs |= {
        "second seed=1": training(ranks=slow, losses=(9, 6, 5)),
        "same seed=1": training((10, 40, 160), (9, 7, 5)),
    }
    epochs |= {"still seed=1": training(ranks=(10, 11, 10), losses=(9, 6, 5))}
    numbers = numbers_of(epochs)
    assert (numbers.rank_earlier, numbers.compared) == (6, 8)


def test_a_setting_is_the_geometric_mean_of_its_seeds() -> None:
    epochs = {
        "a seed=1": training((10, 40, 90), (3, 2, 1)),
        "a seed=2": training((40, 40, 10), (5, 4, 2)),
    }
    numbers = numbers_of(epochs)
    assert [path.group for path in numbers.paths] == ["a"] and numbers.paths[0].seeds == 2
    assert numbers.paths[0].log_rank_T.tolist() == pytest.approx(
        [math.log(rank) for rank in (20, 40, 30)]
    )
    assert numbers.paths[0].log_perplexity_T.tolist() == pytest.approx([4, 3, 1.5])


def test_half_ways_end_before_averaging() -> None:
    """Ranks 10, 20, 160 and losses 9, 6, 5 as above; what averaging does after them changes
    nothing."""
    path = numbers_of(
        {"a seed=1": training((10, 20, 160, 900), (9.0, 6.0, 5.0, 4.0), averaged_from=4)}
    ).paths[0]
    assert path.plain == 3
    assert [path.rank_half, path.perplexity_half] == pytest.approx([2 + 1 / 3, 1 + 2 / 3])


def test_trials_that_are_not_done_or_have_no_rank_of_an_epoch_do_not_count() -> None:
    good = training((10, 20, 30), (3, 2, 1))
    holes = [*good[:2], good[2].model_copy(update={"press_rank": None})]
    epochs = {
        "good seed=1": good,
        "holes seed=1": holes,
        "zero seed=1": training((10, 0, 30), (3, 2, 1)),
    }
    rows = [done_trial(name.partition(" ")[0], 1) for name in (*epochs, "none", "failed")]
    rows[-1] = fail(rows[-1], state="diverged", cause="")
    frame, all_epochs = flatten(rows).frame(), epochs | {"failed seed=1": good}
    press, entropy = rank_training_numbers(frame, all_epochs, RankOverTraining())
    assert [path.group for path in press.paths] == ["good"]
    assert [path.group for path in entropy.paths] == ["good", "holes", "zero"]
    assert (
        rank_training_numbers(
            frame, {"holes seed=1": holes}, RankOverTraining(ranks=("press_rank",))
        )
        == ()
    )


@pytest.mark.parametrize(
    ("evaluation", "words"),
    [
        ({"epoch_rank_contexts": 64}, 512),
        ({"epoch_rank_contexts": 512}, 64),
        ({"epoch_rank_contexts": 512, "valid_tokens": 64}, None),
    ],
)
def test_epochs_whose_rank_is_as_much_as_the_matrix_allows_are_counted(
    evaluation: dict[str, int], words: int | None
) -> None:
    """log P has a row a context and a column a word."""
    epochs = {
        "a seed=1": training((10, 64, 64), (3, 2, 1)),
        "b seed=1": training((10, 20, 64), (3, 2, 1)),
    }
    frame = frame_of(epochs, evaluation=evaluation)
    press, *_ = rank_training_numbers(frame.assign(rank_columns=words), epochs, RankOverTraining())
    assert (press.bound, press.at_bound, press.measured) == (64, 3, 6)
    assert (numbers_of(epochs).bound, numbers_of(epochs).at_bound) == (None, 0)


def test_trials_of_different_vocabularies_have_bounds_of_their_own() -> None:
    epochs = {
        "a seed=1": training((10, 64, 64), (3, 2, 1)),
        "b seed=1": training((10, 20, 64), (3, 2, 1)),
    }
    press, *_ = rank_training_numbers(
        frame_of(epochs).assign(rank_columns=[64, 300]), epochs, RankOverTraining()
    )
    assert (press.bound, press.at_bound) == (None, 2)


def test_lines_are_coloured_by_the_first_setting_that_is_a_number() -> None:
    epochs = {"a seed=1": training((10, 20, 30), (3, 2, 1))}
    frame = frame_of(epochs, model={"name": "x", "k": 2.5})
    press, *_ = rank_training_numbers(
        frame, epochs, RankOverTraining(), colours=["absent", "model.name", "model.k"]
    )
    assert (press.colour_by, press.paths[0].colour) == ("model.k", 2.5)


def test_what_only_some_trials_have_or_differs_within_a_setting_is_no_colour() -> None:
    """A softmax beside GSS has no c; a mean over seeds has no seed."""
    epochs = {
        name: training((10, 20, 30), (3, 2, 1)) for name in ("a seed=1", "a seed=2", "b seed=1")
    }
    frame = frame_of(epochs).assign(c=[0.5, 0.5, math.nan], k=[1.0, 1.0, 2.0])
    colours = ("c", "seed", "k")
    press, *_ = rank_training_numbers(frame, epochs, RankOverTraining(), colours=colours)
    assert (press.colour_by, [path.colour for path in press.paths]) == ("k", [1.0, 2.0])
    uncoloured, *_ = rank_training_numbers(frame, epochs, RankOverTraining(), colours=colours[:2])
    assert (uncoloured.colour_by, uncoloured.paths[0].colour) == (None, None)
