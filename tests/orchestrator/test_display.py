"""The time left, as a sweep shows it."""

from __future__ import annotations

import io
import time

import pytest
from rich.console import Console

from orchestrator.display import PlainLines
from trainables.outcome import TrialOutcome


def test_the_start_of_ray_and_of_the_workers_does_not_count_as_the_time_of_a_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two at a time, 20 s until the first two end, then 1 s a trial: 8 trials are 8 s, not 80."""
    clock_s = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock_s[-1])
    shown = io.StringIO()
    lines = PlainLines(Console(file=shown, width=200), 12, "first epoch")
    lines.started("0", "0")
    for number, end_s in enumerate([20.0, 20.0, 21.0, 22.0]):
        clock_s.append(end_s)
        lines.started(str(number + 1), str(number + 1))
        lines.finished(str(number), TrialOutcome(trial_id=str(number), state="done"))
    assert [line.partition("(")[2] for line in shown.getvalue().splitlines()] == [
        "",
        "",
        "about 9 s left)",
        "about 8 s left)",
    ]
