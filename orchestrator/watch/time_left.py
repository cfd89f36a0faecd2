"""How long a sweep takes yet, by what its trials have taken so far."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from statistics import fmean

from trainables.trial_folder import EpochMetrics

REMEMBERED = 50
"""Ended trials that those to come are judged by: a study may go on to larger ones."""


@dataclass(eq=False)
class RunningTrial:
    """When a trial started, and how far it is."""

    name: str
    epoch_count: int | None
    """Epochs that it trains."""
    started_s: float
    first_epoch: int = 0
    """Which one was heard of first: a trial may go on from a checkpoint."""
    last: EpochMetrics | None = None
    last_s: float = 0.0
    """When that epoch ended."""

    def add(self, epoch: EpochMetrics) -> None:
        """An epoch that ended now."""
        self.first_epoch = self.first_epoch or epoch.epoch
        self.last, self.last_s = epoch, time.monotonic()

    def seconds_left(self) -> float | None:
        """Of its training, by its pace since it started; None before its first epoch, after its
        last one, and where none can be said."""
        if self.last is None or not self.epoch_count or self.last.epoch >= self.epoch_count:
            return None
        seconds_per_epoch = (self.last_s - self.started_s) / (
            self.last.epoch - self.first_epoch + 1
        )
        left_s = seconds_per_epoch * (self.epoch_count - self.last.epoch) - (
            time.monotonic() - self.last_s
        )
        return left_s if left_s > 0 else None


class TimeLeft:
    """Of a whole sweep. Means, and the count of workers when a trial ended last, keep it from
    jumping whenever one trial gives way to another."""

    def __init__(self) -> None:
        self._workers = 1
        self._first_wave: int | None = None
        """How many trials of it have not ended."""
        self._first_whole_s: list[float] = []
        """What those with epochs have taken, the start of Ray and of the workers included."""
        self._whole_s: deque[float] = deque(maxlen=REMEMBERED)
        """What later ones have taken."""
        self._behind_s: deque[float] = deque(maxlen=REMEMBERED)
        """What was taken after the last epoch, for measurements."""

    def ended(self, trial: RunningTrial, running: int) -> None:
        """That trial has ended now, as one of so many."""
        now_s, self._workers = time.monotonic(), running
        self._first_wave = running if self._first_wave is None else self._first_wave
        if trial.last is not None:
            self._behind_s.append(now_s - trial.last_s)
        if self._first_wave == 0:
            self._whole_s.append(now_s - trial.started_s)
            return
        self._first_wave -= 1
        if trial.last is not None:
            self._first_whole_s.append(now_s - trial.started_s)

    def seconds(self, running: Collection[RunningTrial], waiting: int) -> float:
        """Until the last trial ends; 0 where nothing can be said yet."""
        now_s, behind_s = time.monotonic(), fmean(self._behind_s or [0.0])
        left_s = {
            trial: left + behind_s
            for trial in running
            if (left := trial.seconds_left()) is not None
        }
        projected_s = [now_s - trial.started_s + left for trial, left in left_s.items()]
        whole_s = fmean(self._whole_s or self._first_whole_s or projected_s or [0.0])
        if whole_s == 0.0:
            return 0.0
        for trial in running:
            if trial not in left_s:
                trained = trial.last is not None and trial.last.epoch == trial.epoch_count
                end_s = trial.last_s + behind_s if trained else trial.started_s + whole_s
                left_s[trial] = max(0.0, end_s - now_s)
        shared_s = (sum(left_s.values()) + waiting * whole_s) / max(self._workers, len(running))
        return max([shared_s, *left_s.values()])
