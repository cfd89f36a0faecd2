from __future__ import annotations

import io
import math
import re
import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import pytest
from rich.console import Console

from orchestrator.watch.terminal import Terminal
from tests.support.store_rows import epoch
from trainables.config import Goal
from trainables.trial_folder import TrialOutcome


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, trials: int) -> None:
        self.now_s = 0.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now_s)
        self.output = io.StringIO()
        self.console = Console(file=self.output, width=120)
        self.picture = Terminal(self.console, trials, Goal("test_perplexity"), "first epoch")

    def start(self, *names: str, epochs: int | None = 8) -> None:
        for name in names:
            self.picture.started(name, f"trial {name}", epochs)

    def end(self, name: str) -> None:
        self.picture.finished(f"trial {name}", TrialOutcome(trial_id=name, state="done"))

    def drawn(self) -> str:
        return draw(Console(file=io.StringIO(), width=120), self.picture)

    def seconds_left(self) -> float:
        match = re.search(r"about ([\d.,]+) (s|min|h) left", self.drawn().splitlines()[0])
        scale = {"s": 1, "min": 60, "h": 3600}
        return float(match[1].replace(",", "")) * scale[match[2]] if match else 0.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], Clock]:
    return partial(Clock, monkeypatch)


def test_ray_start_is_not_counted(clock: Callable[[int], Clock]) -> None:
    """Two trials run at a time. The first two take 20 s, because Ray starts; later ones take 2 s.

    The estimate must ignore Ray's start: the 8 remaining trials need 8 s.
    """
    sweep = clock(14)
    sweep.start("0", "1", epochs=None)
    for number, end_s in enumerate([20.0, 20.0, 22.0, 22.0, 24.0, 24.0]):
        sweep.now_s = end_s
        sweep.end(str(number))
        sweep.start(str(number + 2), epochs=None)
    assert 6 <= sweep.seconds_left() <= 8
    lines = sweep.output.getvalue().splitlines()
    assert "left" not in lines[0] and lines[-1].startswith("[6/14] trial 5: done (about")


def test_stopped_trial_disappears(clock: Callable[[int], Clock]) -> None:
    sweep = clock(3)
    sweep.start("first", "second")
    sweep.picture.stopped("first", "first")
    assert "first was stopped;" in sweep.output.getvalue()
    sweep.end("second")
    assert "1/2" in sweep.drawn() and "trial first" not in sweep.drawn()


def test_running_trials_show_their_epochs(clock: Callable[[int], Clock]) -> None:
    """Two of six trials run at a time, each with 8 epochs of 5 s.

    After 2 epochs, 30 s of the first two trials remain, and two more rounds of 40 s.
    """
    sweep = clock(6)
    sweep.start("a", "b")
    for number in (1, 2):
        sweep.now_s = 5.0 * number
        for name in ("a", "b"):
            sweep.picture.epoch(name, epoch(number, valid_loss=math.log(100 / number)))
    drawn = sweep.drawn()
    assert drawn.count("epoch 2/8") == drawn.count("valid perplexity 50.00") == 2
    assert 70 <= sweep.seconds_left() <= 120


def test_earlier_runs_epochs_are_excluded(clock: Callable[[int], Clock]) -> None:
    sweep = clock(1)
    sweep.start("a", epochs=10)
    for number in (6, 7):
        sweep.now_s += 5.0
        sweep.picture.epoch("a", epoch(number))
    assert sweep.seconds_left() == 15


@pytest.mark.parametrize(
    ("trials", "workers", "slow"), [(24, 3, 1), (8, 1, 1), (40, 8, 1), (24, 3, 2)]
)
def test_remaining_time_is_right(
    clock: Callable[[int], Clock], trials: int, workers: int, slow: int
) -> None:
    """A trial takes 2 s, then 8 epochs of 5 s, then 4 s.

    Every fifth trial may have slower epochs.
    """
    starts: dict[int, list[str]] = {}
    events: dict[int, list[tuple[str, int]]] = {}
    free_s = list(range(workers))
    for name in map(str, range(trials)):
        start_s = min(free_s)
        pace_s = 5 * slow if int(name) % 5 == 4 else 5
        starts.setdefault(start_s, []).append(name)
        for number in range(1, 9):
            events.setdefault(start_s + 2 + pace_s * number, []).append((name, number))
        free_s[free_s.index(start_s)] = start_s + 8 * pace_s + 6
        events.setdefault(start_s + 8 * pace_s + 6, []).append((name, 0))
    sweep, estimates = clock(trials), []
    for now_s in range(max(events)):
        sweep.now_s = float(now_s)
        for name, number in events.get(now_s, ()):
            if number:
                sweep.picture.epoch(name, epoch(number))
            else:
                sweep.end(name)
        sweep.start(*starts.get(now_s, ()))
        if now_s > 50 + workers:
            estimates.append((max(events) - now_s, sweep.seconds_left()))
    last_s = 46 * slow  # the last trials leave some workers idle
    assert all(abs(estimate - truth) < 0.3 * truth + last_s for truth, estimate in estimates), (
        estimates
    )
    jumps = [next_estimate - estimate for (_, estimate), (_, next_estimate) in pairwise(estimates)]
    assert max(jumps) < 0.1 * slow * max(events) + 30


def test_other_commands_trial_has_its_name(clock: Callable[[int], Clock]) -> None:
    sweep = clock(2)
    sweep.end("elsewhere")
    assert sweep.output.getvalue() == "[1/2] trial elsewhere: done\n"


def test_results_stay_above_the_status() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    picture = Terminal(console, 3, Goal("test_perplexity"), "first epoch")
    for name, state, perplexity in (
        ("a", "done", 90.0),
        ("b", "done", 80.5),
        ("c", "diverged", None),
    ):
        picture.started(name, f"trial {name}", 8)
        measured = {} if perplexity is None else {"perplexity@1": {"test_perplexity": perplexity}}
        cause = "the train loss became nan" if state == "diverged" else None
        outcome = TrialOutcome(trial_id=name, state=state, cause=cause, measurements=measured)
        picture.finished(f"trial {name}", outcome)
    lines = draw(console, picture).splitlines()
    assert [line.strip() for line in lines[:3]] == [
        "[1/3] trial a: test perplexity 90.00",
        "[2/3] trial b: test perplexity 80.50",
        "[3/3] trial c: diverged: the train loss became nan",
    ]
    assert "Best of this run: trial b, test perplexity 80.50" in map(str.strip, lines)


def draw(console: Console, picture: Terminal) -> str:
    console.print(picture)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()
