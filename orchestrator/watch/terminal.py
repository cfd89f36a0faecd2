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
    """Before the first epoch ended."""
    latest: EpochMetrics | None = None

    def describe(self) -> str:
        """Epoch and perplexity so far."""
        if self.latest is None:
            return self.doing
        return f"epoch {self.latest.epoch}, validation perplexity {math.exp(self.latest.valid_loss):.1f}"


def _result(outcome: TrialOutcome) -> str:
    if outcome.state == "pruned":
        return str(outcome.cause)
    if outcome.state != "done":
        return f"{outcome.state}: {outcome.cause}"
    metrics = {name: value for measured in outcome.measurements.values() for name, value in measured.items()}
    parts = []
    if "test_perplexity" in metrics:
        parts.append(f"test perplexity {metrics['test_perplexity']:.2f}")
    if "press_rank" in metrics:
        parts.append(f"Press rank {metrics['press_rank']}")
    return ", ".join(parts) or "done"


class PlainLines(Listener):
    """A line for each trial that ends: for log files and pipes."""

    def __init__(self, console: Console, total: int, doing: str) -> None:
        """`doing`: how trials begin."""
        self.console = console
        self.total = total
        self.doing = doing
        self.finished_trials = 0
        self.failures: list[str] = []
        self.running: dict[str, _Running] = {}
        self._first_wave = 0
        self._first_wave_over_s = 0.0

    @override
    def started(self, trial_id: str, name: str) -> None:
        self.running[trial_id] = _Running(name, time.monotonic(), self.doing)

    @override
    def epoch(self, trial_id: str, metrics: EpochMetrics) -> None:
        if trial_id in self.running:
            self.running[trial_id].latest = metrics

    @override
    def stopped(self, trial_id: str, name: str) -> None:
        self.running.pop(trial_id, None)
        self.total -= 1
        self.note(f"{name} was stopped as asked; it goes on when the study is run again.")

    @override
    def added(self, count: int) -> None:
        self.total += count
        self.note(f"Another command added {counted(count, 'trial')} to the study: run here, too.")

    @override
    def note(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)

    @override
    def finished(self, trial_id: str, outcome: TrialOutcome) -> None:
        self._first_wave = self._first_wave or len(self.running)
        running = self.running.pop(trial_id, None)
        name = running.name if running else trial_id[:12]
        self.finished_trials += 1
        if self.finished_trials <= self._first_wave:
            self._first_wave_over_s = time.monotonic()
        line = f"{name}: {_result(outcome)}"
        if outcome.state not in COMPLETE:
            self.failures.append(line)
        self._show_finished(line, self._time_left())

    def _show_finished(self, line: str, time_left: str) -> None:
        left = f" ({time_left})" if time_left else ""
        self.note(f"[{self.finished_trials}/{self.total}] {line}{left}")

    def _time_left(self) -> str:
        """Extrapolated from the trials that ended after the first wave, which shares its time with the start of Ray
        and of the workers; nothing before."""
        later_trials, remaining = self.finished_trials - self._first_wave, self.total - self.finished_trials
        if later_trials <= 0 or remaining <= 0:
            return ""
        seconds_per_trial = (time.monotonic() - self._first_wave_over_s) / later_trials
        return f"about {duration(seconds_per_trial * remaining)} left"


class LivePicture(PlainLines):
    """A bar, the running trials and the failures, redrawn in place."""

    def __init__(self, console: Console, total: int, doing: str) -> None:
        super().__init__(console, total, doing)
        self._left = ""
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
    def note(self, text: str) -> None:
        """Above the picture."""
        self.console.print(text)

    @override
    def _show_finished(self, line: str, time_left: str) -> None:
        self._left = time_left

    def __rich__(self) -> Group:
        """The picture as it is now."""
        self._bar.update(self._task, completed=self.finished_trials, total=self.total, left=self._left)
        running = Table.grid(padding=(0, 2))
        for trial in list(self.running.values())[:SHOWN_RUNNING]:
            seconds = time.monotonic() - trial.started_s
            running.add_row(f"  {trial.name}", trial.describe(), duration(seconds))
        if len(self.running) > SHOWN_RUNNING:
            running.add_row(f"  and {len(self.running) - SHOWN_RUNNING} more")
        failed = [f"  {line}" for line in self.failures[-SHOWN_FAILURES:]]
        heading = [f"{len(self.failures)} without a result:"] if failed else []
        return Group(self._bar, running, *(Text(line, style="red") for line in heading + failed))


@contextmanager
def watching(console: Console, total: int, doing: str = "first epoch") -> Iterator[Listener]:
    """A listener that shows the sweep on `console` for as long as the context lasts; `doing` is how trials begin."""
    if not console.is_terminal:
        yield PlainLines(console, total, doing)
        return
    picture = LivePicture(console, total, doing)
    with Live(picture, console=console, refresh_per_second=4, transient=True):
        yield picture
