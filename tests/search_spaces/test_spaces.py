from __future__ import annotations

import itertools
import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Literal

import pytest

from search_spaces.spaces import Grid, Random, Search, When, Zip, linear_range, log_range
from search_spaces.study import Study
from search_spaces.tuning import as_cell, cell_count, cells, choices
from tests.support.command import ROOT
from trainables.config import Command, Frozen, Trainable
from trainables.errors import UserError

__package__ = ""  # classes of trials must be in no package


class Momentum(Frozen):
    beta: float = 0.9


class Net(Trainable):
    width: int
    optimizer: Literal["adam", "sgd"] = "adam"
    lr: float = 0.01
    momentum: float = 0.0
    nesterov: bool = False
    inner: Momentum = Momentum()


BASE = Net.model_validate({"width": 8})
NESTED = When(
    "optimizer", "sgd", When("momentum", 0.9, nesterov=(False, True)), momentum=(0.0, 0.5, 0.9)
)


def rows(space: Callable[[], Any], *keys: str) -> list[tuple[Any, ...]]:
    return [tuple(getattr(config, key) for key in keys) for config in space()]


def test_grid_equals_itertools_product() -> None:
    betas = {"inner.beta": (0.1, 0.2)}
    grid = Grid(Net, width=(16, 64), optimizer=("sgd", "adam"), **betas)
    expected = list(itertools.product((16, 64), ("sgd", "adam"), (0.1, 0.2)))
    assert [(c.width, c.optimizer, c.inner.beta) for c in grid()] == expected


def test_zip_pairs_values() -> None:
    assert rows(Zip(BASE, lr=(1, 2), width=(3, 4)), "lr", "width") == [(1.0, 3), (2.0, 4)]


def test_conditions_equal_brute_force() -> None:
    grid = Grid(BASE, NESTED, optimizer=("adam", "sgd"), lr=(0.1, 0.2))
    keys = ("optimizer", "lr", "momentum", "nesterov")
    every = itertools.product(("adam", "sgd"), (0.1, 0.2), (0.0, 0.5, 0.9), (False, True))
    expected = {
        (
            optimizer,
            lr,
            momentum if optimizer == "sgd" else 0.0,
            nesterov if (optimizer, momentum) == ("sgd", 0.9) else False,
        )
        for optimizer, lr, momentum, nesterov in every
    }
    results = rows(grid, *keys)
    assert set(results) == expected and len(results) == len(expected) == 2 * (1 + 4)


def test_condition_may_be_the_base() -> None:
    adam, sgd = When("optimizer", "adam", lr=(1, 2)), When("optimizer", "sgd", lr=(3, 4))
    assert rows(Grid(BASE, adam, width=(1,)), "lr") == [(1,), (2,)]
    union = Grid(BASE, adam, sgd, optimizer=("sgd", "adam"))
    assert rows(union, "optimizer", "lr") == [("sgd", 3), ("sgd", 4), ("adam", 1), ("adam", 2)]


def test_cells_are_counted_and_canonical() -> None:
    search = Search(BASE, NESTED, optimizer=("adam", "sgd"), lr=(0.1, 0.2))
    space = Study(name="a", trials=search, metric="m").tuning.stage2  # type: ignore[union-attr]
    every = list(itertools.product(*(range(len(one.values)) for one in space)))
    results = list(cells(space))
    assert results == sorted({as_cell(space, cell) for cell in every})
    assert cell_count(space) == len(results) == len({str(choices(space, c)) for c in results})


def test_sum_joins_without_repeats() -> None:
    joined = Grid(BASE, width=(1, 2)) + Zip(BASE, width=(2, 3), lr=(0.01, 0.01))
    assert rows(joined, "width") == [(1,), (2,), (3,)]


def test_random_cells_are_pinned() -> None:
    wide = Random(4, BASE, NESTED, seed=7, optimizer=("adam", "sgd"), width=range(1, 1001))
    # From `printf '(7, 0, 1)' | sha256sum` and so on: seed, draw, field.
    pinned = [
        ("sgd", 635, 0.5, False),
        ("sgd", 657, 0.9, False),
        ("adam", 985, 0.0, False),
        ("sgd", 776, 0.9, True),
    ]
    assert rows(wide, "optimizer", "width", "momentum", "nesterov") == pinned


@pytest.mark.parametrize("n", [1, 5, 9, 10, 50])
def test_random_draws_distinct_grid_cells(n: int) -> None:
    fields: dict[str, Any] = {"optimizer": ("adam", "sgd"), "lr": (0.1, 0.2)}
    grid, drawn = Grid(BASE, NESTED, **fields)(), Random(n, BASE, NESTED, **fields)()
    assert len(drawn) == len({config.trial_id for config in drawn}) == min(n, len(grid))
    assert {config.trial_id for config in drawn} <= {config.trial_id for config in grid}
    if n < 9:
        assert drawn == Random(n + 1, BASE, NESTED, **fields)()[:n]
        assert drawn != Random(n, BASE, NESTED, seed=1, **fields)()


def test_huge_space_needs_no_enumeration() -> None:
    fields: dict[str, Any] = {
        key: linear_range(0.0, 1.0, 1001) for key in ("lr", "momentum", "inner.beta")
    }
    assert len(Random(20, BASE, **fields)()) == 20
    assert Study(name="a", trials=Search(BASE, **fields), metric="m").is_own


def test_processes_draw_equal_cells() -> None:
    script = (
        "from tests.search_spaces.test_spaces import *;"
        "print([c.width for c in Random(5, BASE, width=range(1, 99))()])"
    )
    command, hashing = [sys.executable, "-c", script], {"PYTHONHASHSEED": "7"}
    here = str([config.width for config in Random(5, BASE, width=range(1, 99))()])
    assert subprocess.check_output(command, cwd=ROOT, env=hashing, text=True).strip() == here


def test_ranges_have_equal_steps() -> None:
    logs, lines = log_range(1e-4, 0.1, 7), linear_range(0.0, 0.3, 4)
    assert logs[::6] == (1e-4, 0.1) and lines == (0.0, 0.1, 0.2, 0.3)
    ratios = [math.log10(b / a) for a, b in itertools.pairwise(logs)]
    assert ratios == pytest.approx([0.5] * 6, abs=1e-5)
    assert log_range(16, 256, 5) == (16, 32, 64, 128, 256)
    assert linear_range(1, 3, 9) == (1, 2, 3)


def test_commands_have_spaces() -> None:
    base = Command(["train", "--lr={lr}"], lr=0.1)
    commands = Grid(base, lr=(0.1, 0.2), seed=(1, 2))()
    arguments = [command.arguments for command in commands if isinstance(command, Command)]
    assert arguments == [["train", f"--lr={lr}"] for lr in (0.1, 0.1, 0.2, 0.2)]


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Grid(BASE, widht=(1, 2))(), "width"),
        (lambda: Grid(BASE, width=("x",))(), "integer"),
        (lambda: Grid(Net, width=("x",))(), "integer"),
        (lambda: Grid(Net, lr=(0.1,))(), "width"),
        (lambda: Grid(BASE, width=())(), "values"),
        (lambda: Grid(BASE, optimizer="sgd")(), "tuple"),
        (lambda: Grid(int, width=(1,))(), "Trainable"),
        (lambda: Grid(BASE, When("optimzer", "sgd", lr=(1, 2)))(), "When"),
        (lambda: Grid(BASE, When("optimizer", "sdg", lr=(1, 2)))(), "When"),
        (lambda: Grid(BASE, When("lr", 0.01, width=(1, 2)), When("width", 8, lr=(1,)))(), "When"),
        (lambda: Grid(BASE, When("optimizer", "adam", lr=(1, 2)), lr=(3, 4))(), "twice"),
        (lambda: Zip(BASE, width=(1, 2), lr=(0.1,))(), "2.*1"),
        (lambda: Random(0, BASE, width=(1, 2)), "least 1"),
        (lambda: Search(BASE, budget=0, width=(1, 2)), "budget"),
        (lambda: Search(BASE, method="grid", width=(1, 2)), "tpe"),  # type: ignore[arg-type]
        (lambda: log_range(0, 1, 3), "above 0"),
        (lambda: log_range(2, 1, 3), "low < high"),
        (lambda: linear_range(1, math.nan, 3), "low < high"),
        (lambda: linear_range(1, 2, 1), "least 2"),
    ],
)
def test_bad_space_is_one_sentence(make: Callable[[], Any], word: str) -> None:
    with pytest.raises(UserError, match=word) as error:
        make()
    assert "\n" not in str(error.value)
