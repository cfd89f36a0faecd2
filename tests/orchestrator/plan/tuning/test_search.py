from __future__ import annotations

import random
import statistics
import subprocess
import sys

import optuna
import pytest

from orchestrator.plan import PastTrial, suggest, thresholds
from orchestrator.plan.tuning.search import REDUCTION_FACTOR, rung_epochs
from orchestrator.store.records import TrialState
from search_spaces.tuning import Cell, Dimension, Method, Space, cell_count
from tests.support.command import ROOT

SMALL: Space = tuple(Dimension(key=key, short=key, values=(0.1, 0.2, 0.3)) for key in "ab")
LARGE: Space = tuple(
    Dimension(key=key, short=key, values=tuple(n / 10 for n in range(7))) for key in "abcd"
)
STATES: tuple[TrialState, ...] = ("done", "pruned", "diverged", "failed", "running")


def search_history(
    space: Space, method: Method, asks: int, *, seed: int = 0, mixed: bool = False
) -> list[PastTrial]:
    dice = random.Random(seed)
    history: list[PastTrial] = []
    for _ in range(asks):
        cell = suggest(space, method=method, seed=seed, history=history)
        if cell is None:
            break
        loss = loss_of(cell)
        state: TrialState = dice.choice(STATES) if mixed else "done"
        history.append(PastTrial(cell=cell, state=state, losses={1: loss + 1, 2: loss}))
    return history


def loss_of(cell: Cell) -> float:
    return float(sum((index - 1) ** 2 for index in cell))


@pytest.mark.parametrize("method", ["tpe", "random"])
def test_no_cell_comes_twice(method: Method) -> None:
    history = search_history(SMALL, method, 100, mixed=True)
    assert len(history) == len({step.cell for step in history}) == cell_count(SMALL)
    assert suggest(SMALL, method=method, seed=0, history=history) is None


@pytest.mark.parametrize("method", ["tpe", "random"])
def test_processes_suggest_equal_cells(method: Method) -> None:
    expected = [step.cell for step in search_history(LARGE, method, 25, mixed=True)]
    script = (
        "from tests.orchestrator.plan.tuning.test_search import *;"
        f"print([step.cell for step in search_history(LARGE, {method!r}, 25, mixed=True)])"
    )
    command, hashing = [sys.executable, "-c", script], {"PYTHONHASHSEED": "7"}
    assert subprocess.check_output(command, cwd=ROOT, env=hashing, text=True).strip() == str(
        expected
    )


def test_tpe_beats_random_search() -> None:
    best = {
        method: statistics.mean(
            min(loss_of(t.cell) for t in search_history(LARGE, method, 40, seed=seed))
            for seed in range(5)
        )
        for method in ("tpe", "random")
    }
    assert best["tpe"] < best["random"]


@pytest.mark.parametrize(
    ("epochs", "rungs"), [(1, ()), (2, (1,)), (5, (3,)), (20, (3, 9)), (1000, (111, 333))]
)
def test_rungs_are_ninth_and_third(epochs: int, rungs: tuple[int, ...]) -> None:
    assert rung_epochs(epochs) == rungs


@pytest.mark.parametrize("epochs", [2, 5, 9, 27, 270])
@pytest.mark.parametrize("digits", [1, 6], ids=["many ties", "hardly a tie"])
def test_decisions_equal_optunas_pruner(epochs: int, digits: int) -> None:
    """Optuna's pruner receives every epoch's loss, except the last epoch's."""
    dice = random.Random(f"{epochs} {digits}")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    pruner = optuna.pruners.SuccessiveHalvingPruner(
        min_resource=rung_epochs(epochs)[0],
        reduction_factor=REDUCTION_FACTOR,
        min_early_stopping_rate=0,
    )
    study = optuna.create_study(pruner=pruner)
    earlier: list[dict[int, float]] = []
    stopped = 0
    for _ in range(40):
        limits = thresholds(epochs, earlier)
        level = dice.random()
        trial = study.ask()
        losses: dict[int, float] = {}
        for epoch in range(1, epochs):
            losses[epoch] = round(level + 0.3 * dice.random(), digits)
            trial.report(losses[epoch], epoch)
            stops = losses[epoch] > limits.get(epoch, float("inf"))
            assert stops == trial.should_prune(), (epoch, losses[epoch], limits)
            if stops:
                stopped += 1
                break
        study.tell(trial, losses[max(losses)])
        earlier.append(losses)
    assert 10 < stopped < 40
