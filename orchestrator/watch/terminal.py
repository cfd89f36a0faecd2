"""What the terminal shows while a sweep runs: a live picture, or plain lines where there is no
terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text
from typing_extensions import override

from orchestrator.store import COMPLETE
from orchestrator.watch.listener import Listener
from orchestrator.watch.time_left import RunningTrial, TimeLeft
from orchestrator.words import counted, duration
from trainables.trial_folder import EpochMetrics, TrialOutcome

SHOWN_RUNNING = 12
SHOWN_FAILURES = 5


def _result(outcome: TrialOutcome) -> str:
    if outcome.state == "pruned":
        return str(outcome.cause)
    if outcome.state != "done":
        return f"{outcome.state}: {outcome.cause}"
    metrics = outcome.metrics
    parts = []
    if "test_perplexity" in metrics:
        parts.append(f"test perplexity {metrics['test_perplexity']:.2f}")
    if "press_rank" in metrics:
        parts.append(f"Press rank {metrics['press_rank']}")
    return ", ".join(parts) or "done"


class Terminal(Listener):
    """A line a trial that ends; on a terminal, below, a bar, the running trials, the best one and
    the failures, redrawn in place."""

    def __init__(self, console: Console, total: int, doing: str) -> None:
        """`doing`: how trials begin."""
        self._console, self._total, self._doing = console, total, doing
        self._finished = 0
        self._failures: list[str] = []
        self._best: tuple[float, str] | None = None
        self._running: dict[str, RunningTrial] = {}
        self._left = TimeLeft()
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
        self._running[trial_id] = RunningTrial(name, epoch_count, time.monotonic())

    @override
    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        if (trial := self._running.get(trial_id)) is not None:
            trial.add(metrics)

    @override
    def stopped(self, trial_id: str, name: str) -> None:
        self._running.pop(trial_id, None)
        self._total -= 1
        self.note(f"{name} was stopped; it goes on when the study is run again.")

    @override
    def added(self, count: int) -> None:
        self._total += count
        self.note(f"Another command added {counted(count, 'trial')} to the study: run here, too.")

    @override
    def note(self, text: str) -> None:
        """Above the picture, if there is one."""
        self._console.print(text, soft_wrap=not self._console.is_terminal)

    @override
    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        name = trial_id[:12]
        if (trial := self._running.get(trial_id)) is not None:
            name = trial.name
            self._left.ended(trial, len(self._running))
            del self._running[trial_id]
        self._finished += 1
        line = f"{name}: {_result(outcome)}"
        if outcome.state not in COMPLETE:
            self._failures.append(line)
        perplexity = outcome.metrics.get("test_perplexity") if outcome.state == "done" else None
        if isinstance(perplexity, float) and (self._best is None or perplexity < self._best[0]):
            self._best = perplexity, name
        left = self._time_left()
        shown = f" ({left})" if left and not self._console.is_terminal else ""
        self.note(f"[{self._finished}/{self._total}] {line}{shown}")

    def seconds_left(self) -> float:
        """Until all trials have ended; 0 where nothing can be said yet."""
        waiting = max(0, self._total - self._finished - len(self._running))
        return self._left.seconds(self._running.values(), waiting)

    def _time_left(self) -> str:
        seconds = self.seconds_left()
        return f"about {duration(seconds)} left" if seconds else ""

    def _row(self, trial: RunningTrial) -> tuple[str, str, str, str]:
        """Name, epoch, perplexity so far and times, as they are now."""
        elapsed = duration(time.monotonic() - trial.started_s)
        if trial.last is None:
            return f"  {trial.name}", self._doing, "", elapsed
        left = trial.seconds_left()
        return (
            f"  {trial.name}",
            f"epoch {trial.last.epoch}" + (f"/{trial.epoch_count}" if trial.epoch_count else ""),
            f"val. perplexity {trial.last.valid_perplexity:.1f}",
            elapsed if left is None else f"{elapsed}, about {duration(left)} left",
        )

    def __rich__(self) -> Group:
        """The picture as it is now."""
        self._bar.update(
            self._task, completed=self._finished, total=self._total, left=self._time_left()
        )
        running = Table.grid(padding=(0, 2))
        for trial in list(self._running.values())[:SHOWN_RUNNING]:
            running.add_row(*self._row(trial))
        if len(self._running) > SHOWN_RUNNING:
            running.add_row(f"  and {len(self._running) - SHOWN_RUNNING} more")
        failed = [f"  {line}" for line in self._failures[-SHOWN_FAILURES:]]
        heading = [f"{len(self._failures)} without a result:"] if failed else []
        best = (
            [f"Best of this run: {self._best[1]}, test perplexity {self._best[0]:.2f}"]
            if self._best
            else []
        )
        texts = [*map(Text, best), *(Text(line, style="red") for line in heading + failed)]
        return Group(self._bar, running, *texts)


@contextmanager
def watching(console: Console, total: int, doing: str = "first epoch") -> Iterator[Listener]:
    """A listener that shows the sweep on `console` for as long as the context lasts; `doing` is how
    trials begin."""
    terminal = Terminal(console, total, doing)
    if not console.is_terminal:
        yield terminal
        return
    with Live(terminal, console=console, refresh_per_second=4, transient=True):
        yield terminal
