"""What the terminal shows while a sweep runs: a live picture, or plain lines where there is no terminal."""

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
    """How it begins."""
    epoch_count: int | None
    """Epochs that it trains."""
    first_epoch: int = 0
    """Which one was heard of first: a trial may go on from a checkpoint."""
    last: EpochMetrics | None = None
    last_s: float = 0.0
    """When that epoch ended."""

    def row(self) -> tuple[str, str, str, str]:
        """Name, epoch, perplexity so far and times, as they are now."""
        now_s = time.monotonic()
        elapsed = duration(now_s - self.started_s)
        if self.last is None:
            return f"  {self.name}", self.doing, "", elapsed
        left = self.seconds_left(now_s)
        return (
            f"  {self.name}",
            f"epoch {self.last.epoch}" + (f"/{self.epoch_count}" if self.epoch_count else ""),
            f"val. perplexity {self.last.valid_perplexity:.1f}",
            elapsed if left is None else f"{elapsed}, about {duration(left)} left",
        )

    def seconds_left(self, now_s: float) -> float | None:
        """By its pace since it started; None before its first epoch, after its last one, and where none can be said."""
        if self.last is None or not self.epoch_count or self.last.epoch >= self.epoch_count:
            return None
        seconds_per_epoch = (self.last_s - self.started_s) / (self.last.epoch - self.first_epoch + 1)
        left_s = seconds_per_epoch * (self.epoch_count - self.last.epoch) - (now_s - self.last_s)
        return left_s if left_s > 0 else None


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
    """A line a trial that ends; on a terminal, below, a bar, the running trials, the best one and the failures, redrawn
    in place."""

    def __init__(self, console: Console, total: int, doing: str) -> None:
        """`doing`: how trials begin."""
        self._console, self._total, self._doing = console, total, doing
        self._finished = 0
        self._failures: list[str] = []
        self._best: tuple[float, str] | None = None
        self._running: dict[str, _Running] = {}
        self._first_wave = 0
        self._first_wave_over_s = self._last_end_s = 0.0
        self._seconds_per_trial = 0.0
        """Of those after the first wave."""
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
        self._running[trial_id] = _Running(name, time.monotonic(), self._doing, epoch_count)

    @override
    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        if (trial := self._running.get(trial_id)) is not None:
            trial.first_epoch = trial.first_epoch or metrics.epoch
            trial.last, trial.last_s = metrics, time.monotonic()

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
        self._last_end_s = time.monotonic()
        if self._finished <= self._first_wave:
            self._first_wave_over_s = self._last_end_s
        else:
            later = self._finished - self._first_wave
            self._seconds_per_trial = (self._last_end_s - self._first_wave_over_s) / later
        name = running.name if running else trial_id[:12]
        line = f"{name}: {_result(outcome)}"
        if outcome.state not in COMPLETE:
            self._failures.append(line)
        perplexity = outcome.metrics.get("test_perplexity") if outcome.state == "done" else None
        if isinstance(perplexity, float) and (self._best is None or perplexity < self._best[0]):
            self._best = perplexity, name
        left = self._time_left()
        shown = f" ({left})" if left and not self._console.is_terminal else ""
        self.note(f"[{self._finished}/{self._total}] {line}{shown}")

    def _time_left(self) -> str:
        """By the epochs of the trials that run; where they have none, extrapolated from those that ended after the
        first wave, which shares its time with the start of Ray and of the workers."""
        remaining = self._total - self._finished
        if remaining <= 0:
            return ""
        now_s = time.monotonic()
        by_trials = self._seconds_per_trial * remaining - (now_s - self._last_end_s) if self._seconds_per_trial else 0.0
        seconds = self._by_epochs(now_s) or max(0.0, by_trials)
        return f"about {duration(seconds)} left" if seconds else ""

    def _by_epochs(self, now_s: float) -> float:
        """Seconds left if those that wait take as long as those that run; 0 before there is an epoch."""
        running = [(trial, left) for trial in self._running.values() if (left := trial.seconds_left(now_s)) is not None]
        if not running:
            return 0.0
        whole_s = [now_s - trial.started_s + left for trial, left in running]
        waiting = max(0, self._total - self._finished - len(self._running))
        mean_left_s = sum(left for _, left in running) / len(running)
        return mean_left_s + waiting * sum(whole_s) / len(whole_s) / len(self._running)

    def __rich__(self) -> Group:
        """The picture as it is now."""
        self._bar.update(self._task, completed=self._finished, total=self._total, left=self._time_left())
        running = Table.grid(padding=(0, 2))
        for trial in list(self._running.values())[:SHOWN_RUNNING]:
            running.add_row(*trial.row())
        if len(self._running) > SHOWN_RUNNING:
            running.add_row(f"  and {len(self._running) - SHOWN_RUNNING} more")
        failed = [f"  {line}" for line in self._failures[-SHOWN_FAILURES:]]
        heading = [f"{len(self._failures)} without a result:"] if failed else []
        best = [f"Best of this run: {self._best[1]}, test perplexity {self._best[0]:.2f}"] if self._best else []
        texts = [*map(Text, best), *(Text(line, style="red") for line in heading + failed)]
        return Group(self._bar, running, *texts)


@contextmanager
def watching(console: Console, total: int, doing: str = "first epoch") -> Iterator[Listener]:
    """A listener that shows the sweep on `console` for as long as the context lasts; `doing` is how trials begin."""
    terminal = Terminal(console, total, doing)
    if not console.is_terminal:
        yield terminal
        return
    with Live(terminal, console=console, refresh_per_second=4, transient=True):
        yield terminal
