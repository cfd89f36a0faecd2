"""A running sweep on the terminal: a live view, or plain lines if there is no terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from orchestrator.forecast import seconds_left
from orchestrator.store import COMPLETE
from orchestrator.watch.listener import Listener
from orchestrator.words import duration
from trainables.config import USER, Goal
from trainables.trial_folder import Epoch, TrialOutcome

SHOWN_RUNNING = 12
SHOWN_FAILURES = 5


def _value(goal: Goal, value: object) -> str:
    digits = ".2f" if goal.metric.endswith("perplexity") else ".6g"
    text = format(value, digits) if isinstance(value, int | float) else str(value)
    return f"{goal.metric.replace('_', ' ')} {text} {goal.unit}".strip()


def _result(outcome: TrialOutcome, goal: Goal) -> str:
    if outcome.state == "pruned":
        return str(outcome.cause)
    if outcome.state != "done":
        return f"{outcome.state}: {outcome.cause}"
    metrics = outcome.metrics
    parts = []
    if goal.metric in metrics:
        parts.append(_value(goal, metrics[goal.metric]))
    if "press_rank" in metrics:
        parts.append(f"Press rank {metrics['press_rank']}")
    names = ", ".join(outcome.measurements.get(USER, ()))
    wrong = f"done without {goal.metric}: it has {names}. Correct `metric`; results are kept"
    return ", ".join(parts) or (wrong if names else "done")


@dataclass(eq=False)
class _RunningTrial:
    name: str
    epoch_count: int | None
    started_s: float
    last_epoch: Epoch | None = None
    share: float = 0.0


class Terminal(Listener):
    """Prints a line for each ended trial.

    A terminal also has a live view: a bar, the running trials, the best one and the failures.
    """

    def __init__(self, console: Console, total: int, goal: Goal, doing: str) -> None:
        self._console, self._total, self._goal, self._doing = console, total, goal, doing
        self._finished_count = 0
        self._failures: list[str] = []
        self._best: tuple[float, str] | None = None
        self._running: dict[str, _RunningTrial] = {}
        self._work = 0.0
        """Finished work, in trials. A running trial counts by its share of ended epochs."""
        self._first_work: tuple[float, float] | None = None
        """Time and amount of the first reported work. Estimates start here, to exclude the start of
        Ray."""
        self._end_s = 0.0
        """Estimated time of the end; 0 if unknown."""
        self._bar = Progress(
            TextColumn("Trials"),
            BarColumn(bar_width=None),
            MofNCompleteColumn(),
            TextColumn("elapsed"),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
            console=console,
            expand=True,
        )
        self._task = self._bar.add_task("trials", total=total, left="")

    @override
    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        self._running[trial_id] = _RunningTrial(name, epoch_count, time.monotonic())

    @override
    def epoch(self, trial_id: str, metrics: Epoch) -> None:
        trial = self._running.get(trial_id)
        if trial is None:
            return
        work = 0.0
        if trial.epoch_count:
            # A resumed trial starts at a later epoch.
            last_epoch = trial.last_epoch.epoch if trial.last_epoch else metrics.epoch - 1
            work = (metrics.epoch - last_epoch) / trial.epoch_count
            trial.share = metrics.epoch / trial.epoch_count
        trial.last_epoch = metrics
        self._estimate(work)

    @override
    def stopped(self, trial_id: str, name: str) -> None:
        self._running.pop(trial_id, None)
        self._total -= 1
        self.note(f"{name} was stopped; run the same command again to resume it.")

    @override
    def note(self, text: str) -> None:
        self._console.print(text, soft_wrap=not self._console.is_terminal)

    @override
    def finished(self, name: str, outcome: TrialOutcome) -> None:
        trial = self._running.pop(outcome.trial_id, None)
        self._finished_count += 1
        line = f"{name}: {_result(outcome, self._goal)}"
        if outcome.state not in COMPLETE:
            self._failures.append(line)
        value = outcome.metrics.get(self._goal.metric) if outcome.state == "done" else None
        if isinstance(value, int | float):
            loss = self._goal.loss(value)
            if self._best is None or loss < self._best[0]:
                self._best = loss, name
        self._estimate(1.0 if trial is None else 1 - trial.share)
        time_left = self._time_left()
        suffix = f" ({time_left})" if time_left and not self._console.is_terminal else ""
        self.note(f"[{self._finished_count}/{self._total}] {line}{suffix}")

    def _estimate(self, work: float) -> None:
        self._work, now_s = self._work + work, time.monotonic()
        first_s, first_work = self._first_work = self._first_work or (now_s, self._work)
        work_left = (
            self._total
            - self._finished_count
            - sum(trial.share for trial in self._running.values())
        )
        seconds = seconds_left(now_s - first_s, self._work - first_work, work_left)
        self._end_s = now_s + seconds if seconds else 0.0

    def _time_left(self) -> str:
        remaining_s = self._end_s - time.monotonic()
        return f"about {duration(remaining_s)} left" if remaining_s > 0 else ""

    def _row(self, trial: _RunningTrial) -> tuple[str, str, str, str]:
        epoch, progress, result = trial.last_epoch, self._doing, ""
        if epoch is not None:
            progress = f"epoch {epoch.epoch}"
            progress += f"/{trial.epoch_count}" if trial.epoch_count else ""
            numbers, goal = epoch.numbers, self._goal
            if goal.metric not in numbers:
                goal = Goal(next(iter(numbers), ""))
            result = _value(goal, numbers.get(goal.metric, ""))
        elapsed = duration(time.monotonic() - trial.started_s)
        return f"  {trial.name}", progress, result, elapsed

    def __rich__(self) -> Group:
        self._bar.update(
            self._task, completed=self._finished_count, total=self._total, left=self._time_left()
        )
        running = Table.grid(padding=(0, 2))
        for trial in list(self._running.values())[:SHOWN_RUNNING]:
            running.add_row(*self._row(trial))
        if len(self._running) > SHOWN_RUNNING:
            running.add_row(f"  and {len(self._running) - SHOWN_RUNNING} more")
        group = Group(self._bar, running)
        if self._best:
            loss, name = self._best
            text = f"Best of this run: {name}, {_value(self._goal, self._goal.loss(loss))}"
            group.renderables.append(Text(text))
        if self._failures:
            lines = [f"{len(self._failures)} without a result:", *self._failures[-SHOWN_FAILURES:]]
            group.renderables.append(Text("\n  ".join(lines), style="red"))
        return group


@contextmanager
def watching(
    console: Console, total: int, goal: Goal, doing: str = "first epoch"
) -> Iterator[Listener]:
    """Yield a listener that shows the sweep on `console`.

    Trials whose first epoch has not ended show `doing`.
    """
    terminal = Terminal(console, total, goal, doing)
    if not console.is_terminal:
        yield terminal
        return
    with Live(terminal, console=console, refresh_per_second=4, transient=True):
        yield terminal
