"""The time left, and how many trials there are, as a sweep shows it."""

from __future__ import annotations

import io
import math
import re
import time
from itertools import pairwise

import pytest
from rich.console import Console

from orchestrator.watch.terminal import Terminal
from tests.support.store_rows import epoch
from trainables.trial_folder.outcome import TrialOutcome


def test_the_start_of_ray_and_of_the_workers_does_not_count_as_the_time_of_a_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two at a time, 20 s until the first two end, then 2 s a trial: 8 trials are 8 s, not 80."""
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[-1])
    shown = io.StringIO()
    lines = Terminal(Console(file=shown, width=200), 12, "first epoch")
    for number in (0, 1):
        lines.started(str(number), str(number), None)
    for number, end_s in enumerate([20.0, 20.0, 22.0, 22.0]):
        clock_s.append(end_s)
        lines.finished(str(number), TrialOutcome(trial_id=str(number), state="done"))
        lines.started(str(number + 2), str(number + 2), None)
    left = [line.partition("(")[2] for line in shown.getvalue().splitlines()]
    assert left == ["", "", "about 8 s left)", "about 8 s left)"]


def test_a_stopped_trial_is_shown_no_more_and_added_ones_count() -> None:
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    picture = Terminal(console, 3, "first epoch")
    for name in ("first", "second"):
        picture.started(name, name, None)
    picture.stopped("first", "first")
    picture.added(5)
    assert "first was stopped;" in shown.getvalue()
    assert "5 trials" in shown.getvalue()
    picture.finished("second", TrialOutcome(trial_id="second", state="done"))
    console.print(picture)
    drawn = shown.getvalue().partition("Trials")[2]
    assert "1/7" in drawn
    assert "first" not in drawn


def test_before_the_second_wave_the_time_left_is_that_of_the_epochs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two of six at a time, 8 epochs of 5 s each: after 2 epochs, 30 s and two waves of 40 s."""
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[-1])
    console = Console(file=io.StringIO(), width=120)
    picture = Terminal(console, 6, "first epoch")
    for name in ("a", "b"):
        picture.started(name, f"trial {name}", 8)
    for number in (1, 2):
        clock_s.append(5.0 * number)
        for name in ("a", "b"):
            picture.epoch(name, epoch(number, valid_loss=math.log(100 / number)))
    drawn = draw(console, picture)
    assert "about 110 s left" in drawn or "about 2 min left" in drawn, drawn
    assert drawn.count("epoch 2/8") == drawn.count("val. perplexity 50.0") == 2
    assert drawn.count("10 s, about 30 s left") == 2


def test_the_time_left_is_right_in_the_second_wave_and_falls_while_nothing_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Four of forty at a time, 10 epochs of 10 s each, started 5 s after one another."""
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[-1])
    console = Console(file=io.StringIO(), width=120)
    picture = Terminal(console, 40, "first epoch")
    starts = {name: 5.0 * name for name in range(4)}
    shown: list[tuple[float, float]] = []
    ended = 0
    for now_s in range(0, 310, 5):
        clock_s.append(float(now_s))
        for name, start_s in list(starts.items()):
            if now_s == start_s:
                picture.started(str(name), f"trial {name}", 10)
            elif now_s > start_s and (now_s - start_s) % 10 == 0:
                picture.epoch(str(name), epoch(int(now_s - start_s) // 10))
            if now_s == start_s + 100:
                picture.finished(str(name), TrialOutcome(trial_id=str(name), state="done"))
                ended += 1
                starts[name + 4] = starts.pop(name) + 100.0
                picture.started(str(name + 4), f"trial {name + 4}", 10)
        if now_s >= 130:
            left = re.search(
                r"about (\d+) (s|min) left", draw(Console(file=io.StringIO(), width=120), picture)
            )
            assert left is not None, now_s
            shown.append((1015.0 - now_s, float(left[1]) * {"s": 1, "min": 60}[left[2]]))
    assert ended >= 8
    assert all(0.85 * truth < said < 1.15 * truth + 60 for truth, said in shown), shown


@pytest.mark.parametrize(
    ("trials", "workers", "slow"), [(24, 3, 1), (8, 1, 1), (40, 8, 1), (24, 3, 2)]
)
def test_the_time_left_does_not_jump_where_a_trial_gives_way_to_another(
    monkeypatch: pytest.MonkeyPatch, trials: int, workers: int, slow: int
) -> None:
    """8 epochs of 5 s each, 2 s before and 4 s behind them; every fifth trial's epochs may be
    slower."""
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[-1])
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
    picture = Terminal(Console(file=io.StringIO(), width=120), trials, "first epoch")
    said: list[tuple[float, float]] = []
    for now_s in range(max(events)):
        clock_s.append(float(now_s))
        for name, number in events.get(now_s, ()):
            if number:
                picture.epoch(name, epoch(number))
            else:
                picture.finished(name, TrialOutcome(trial_id=name, state="done"))
        for name in starts.get(now_s, ()):
            picture.started(name, name, 8)
        if now_s > 50 + workers:
            said.append((max(events) - now_s, picture.seconds_left()))
    unknown_s = 40 * (slow - 1)  # of a trial before its first epoch
    assert all(abs(left - truth) < 0.3 * truth + 5 + unknown_s for truth, left in said), said
    assert max(abs(later - left) for (_, left), (_, later) in pairwise(said)) < 0.1 * slow * max(
        events
    )


def test_a_trial_that_measures_after_its_last_epoch_has_no_time_left_that_could_be_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[-1])
    picture = Terminal(Console(file=io.StringIO(), width=120), 1, "first epoch")
    picture.started("a", "trial a", 2)
    for number in (1, 2):
        clock_s.append(10.0 * number)
        picture.epoch("a", epoch(number))
    clock_s.append(80.0)
    drawn = draw(Console(file=io.StringIO(), width=120), picture)
    assert "epoch 2/2" in drawn and "80 s" in drawn and "left" not in drawn


def test_results_stay_above_the_picture_and_the_best_one_in_it() -> None:
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system=None)
    picture = Terminal(console, 3, "first epoch")
    for name, state, perplexity in (
        ("a", "done", 90.0),
        ("b", "done", 80.5),
        ("c", "diverged", None),
    ):
        picture.started(name, f"trial {name}", 8)
        measured = {} if perplexity is None else {"perplexity@1": {"test_perplexity": perplexity}}
        cause = "the train loss became nan" if state == "diverged" else None
        picture.finished(
            name, TrialOutcome(trial_id=name, state=state, cause=cause, measurements=measured)
        )
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
