"""The time left, and how many trials there are, as a sweep shows it."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from orchestrator.watch.terminal import Terminal
from trainables.trial_folder.outcome import TrialOutcome


def test_the_start_of_ray_and_of_the_workers_does_not_count_as_the_time_of_a_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two at a time, 20 s until the first two end, then 1 s a trial: 8 trials are 8 s, not 80."""
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[-1])
    shown = io.StringIO()
    lines = Terminal(Console(file=shown, width=200), 12, "first epoch")
    lines.started("0", "0")
    for number, end_s in enumerate([20.0, 20.0, 21.0, 22.0]):
        clock_s.append(end_s)
        lines.started(str(number + 1), str(number + 1))
        lines.finished(str(number), TrialOutcome(trial_id=str(number), state="done"))
    left = [line.partition("(")[2] for line in shown.getvalue().splitlines()]
    assert left == ["", "", "about 9 s left)", "about 8 s left)"]


def test_a_stopped_trial_is_shown_no_more_and_added_ones_count() -> None:
    shown = io.StringIO()
    console = Console(file=shown, width=200)
    picture = Terminal(console, 3, "first epoch")
    for name in ("first", "second"):
        picture.started(name, name)
    picture.stopped("first", "first")
    picture.added(5)
    assert "first was stopped;" in shown.getvalue()
    assert "5 trials" in shown.getvalue()
    picture.finished("second", TrialOutcome(trial_id="second", state="done"))
    console.print(picture)
    drawn = shown.getvalue().partition("Trials")[2]
    assert "1/7" in drawn
    assert "first" not in drawn
