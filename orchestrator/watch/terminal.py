"""What the terminal shows while a sweep runs: a live picture, or plain lines where there is no terminal."""

from __future__ import annotations

import math
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

from orchestrator.store import COMPLETE
from orchestrator.watch.listener import Listener
from orchestrator.words import counted, duration
from trainables.trial_folder import EpochMetrics, TrialOutcome

SHOWN_RUNNING = 12
SHOWN_FAILURES = 5


@dataclass
class _Running:
    name: str
    started_s: float
    doing: str
    """How it begins; after an epoch, epoch and perplexity so far."""


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
    """A bar, the running trials and the failures, redrawn in place; in log files and pipes a line a trial that ends."""

    def __init__(self, console: Console, total: int, doing: str) -> None:
        """`doing`: how trials begin."""
        self._console, self._total, self._doing = console, total, doing
        self._finished = 0
        self._failures: list[str] = []
        self._running: dict[str, _Running] = {}
        self._first_wave = 0
        self._first_wave_over_s = 0.0
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
    def started(self, trial_id: str, name: str) -> None:
        self._running[trial_id] = _Running(name, time.monotonic(), self._doing)

    @override
    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        if trial_id in self._running:
            perplexity = math.exp(metrics.valid_loss)
            self._running[trial_id].doing = f"epoch {metrics.epoch}, validation perplexity {perplexity:.1f}"

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
        self._first_wave = self._first_wave or len(self._running)
        running = self._running.pop(trial_id, None)
        self._finished += 1
        if self._finished <= self._first_wave:
            self._first_wave_over_s = time.monotonic()
        line = f"{running.name if running else trial_id[:12]}: {_result(outcome)}"
        if outcome.state not in COMPLETE:
            self._failures.append(line)
        left = self._time_left()
        self._bar.update(self._task, left=left)
        if not self._console.is_terminal:
            self.note(f"[{self._finished}/{self._total}] {line}" + (f" ({left})" if left else ""))

    def _time_left(self) -> str:
        """Extrapolated from the trials that ended after the first wave, which shares its time with the start of Ray
        and of the workers; nothing before."""
        later_trials, remaining = self._finished - self._first_wave, self._total - self._finished
        if later_trials <= 0 or remaining <= 0:
            return ""
        seconds_per_trial = (time.monotonic() - self._first_wave_over_s) / later_trials
        return f"about {duration(seconds_per_trial * remaining)} left"

    def __rich__(self) -> Group:
        """The picture as it is now."""
        self._bar.update(self._task, completed=self._finished, total=self._total)
        running = Table.grid(padding=(0, 2))
        for trial in list(self._running.values())[:SHOWN_RUNNING]:
            running.add_row(f"  {trial.name}", trial.doing, duration(time.monotonic() - trial.started_s))
        if len(self._running) > SHOWN_RUNNING:
            running.add_row(f"  and {len(self._running) - SHOWN_RUNNING} more")
        failed = [f"  {line}" for line in self._failures[-SHOWN_FAILURES:]]
        heading = [f"{len(self._failures)} without a result:"] if failed else []
        return Group(self._bar, running, *(Text(line, style="red") for line in heading + failed))


@contextmanager
def watching(console: Console, total: int, doing: str = "first epoch") -> Iterator[Listener]:
    """A listener that shows the sweep on `console` for as long as the context lasts; `doing` is how trials begin."""
    terminal = Terminal(console, total, doing)
    if not console.is_terminal:
        yield terminal
        return
    with Live(terminal, console=console, refresh_per_second=4, transient=True):
        yield terminal
