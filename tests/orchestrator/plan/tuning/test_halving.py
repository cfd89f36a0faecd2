"""Successive halving: the thresholds decide what Optuna's pruner decides."""

from __future__ import annotations

import random

import optuna
import pytest

from orchestrator.plan.tuning.halving import REDUCTION_FACTOR, rung_epochs, thresholds


@pytest.mark.parametrize(("epochs", "rungs"), [(1, ()), (2, (1,)), (5, (3,)), (20, (3, 9)), (1000, (111, 333))])
def test_rungs_are_a_ninth_and_a_third_of_the_epochs_and_not_before_the_third_if_there_are_more(
    epochs: int, rungs: tuple[int, ...]
) -> None:
    assert rung_epochs(epochs) == rungs


@pytest.mark.parametrize("epochs", [2, 5, 9, 18, 27, 270])
@pytest.mark.parametrize("digits", [1, 6], ids=["many ties", "hardly a tie"])
def test_every_decision_is_that_of_optunas_pruner(epochs: int, digits: int) -> None:
    """Forty trials of random losses one after another; Optuna hears of every epoch before the last."""
    dice = random.Random(f"{epochs} {digits}")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=rung_epochs(epochs)[0], reduction_factor=REDUCTION_FACTOR, min_early_stopping_rate=0
    )
    study = optuna.create_study(pruner=pruner)
    earlier: list[dict[int, float]] = []
    stopped = 0
    for _ in range(40):
        above = thresholds(epochs, earlier)
        level = dice.random()
        trial = study.ask()
        losses: dict[int, float] = {}
        for epoch in range(1, epochs):
            losses[epoch] = round(level + 0.3 * dice.random(), digits)
            trial.report(losses[epoch], epoch)
            stops = losses[epoch] > above.get(epoch, float("inf"))
            assert stops == trial.should_prune(), (epoch, losses[epoch], above)
            if stops:
                stopped += 1
                break
        study.tell(trial, losses[max(losses)])
        earlier.append(losses)
    assert 10 < stopped < 40
