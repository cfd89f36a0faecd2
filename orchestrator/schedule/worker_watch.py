"""Detect workers that make no progress.

By default a training step may take ten times the trial's longest step so far, and at least two
minutes. Other work (start, validation, measuring) may take ten minutes, or as long as it has
announced. Time in which the driver was suspended does not count, so a laptop's sleep ends no trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.schedule.study_work import POLL_S
from orchestrator.words import duration
from orchestrator.worker import Beat, Ending, EndingKind
from trainables.pulse import TRAINING

MIN_LIMIT_S, STEP_FACTOR, NO_PACE_LIMIT_S = 120.0, 10, 600.0
# A longer gap between looks (the driver was suspended) counts as one interval.
LONGEST_LOOK_S = 3 * POLL_S


@dataclass
class _Worker:
    beat: Beat | None = None
    silent_s: float = 0.0
    longest_step_s: float = 0.0
    beat_age_s: float = 0.0
    ending_s: float | None = None


class WorkerWatch:
    """Watches the progress of one driver's workers, by pack name."""

    def __init__(self, limit_s: float | None) -> None:
        """Allow `limit_s` seconds without progress; None applies the defaults of this module."""
        self._limit_s = limit_s
        self._workers: dict[str, _Worker] = {}
        self._last_look_s: float | None = None

    @property
    def keys(self) -> list[str]:
        """Names of the packs that have a worker."""
        return list(self._workers)

    def add(self, key: str) -> None:
        """Watch the pack's worker."""
        self._workers[key] = _Worker()

    def remove(self, key: str) -> None:
        """Forget the pack."""
        self._workers.pop(key, None)

    def mark_ending(self, key: str) -> None:
        """Record that the worker of pack `key` was asked to end."""
        worker = self._workers.get(key)
        if worker is not None and worker.ending_s is None:
            worker.ending_s = 0.0

    def update(self, now_s: float, beats: Mapping[str, Beat]) -> None:
        """Process the latest heartbeats, by pack name."""
        interval_s = 0.0 if self._last_look_s is None else now_s - self._last_look_s
        self._last_look_s = now_s
        for key, worker in self._workers.items():
            _add_beat(worker, beats.get(key), POLL_S if interval_s > LONGEST_LOOK_S else interval_s)

    def stalls(self) -> dict[str, Ending]:
        """Return the endings of workers without progress, by pack name."""
        return {
            key: Ending(EndingKind.STALLED, _stall_cause(worker))
            for key, worker in self._workers.items()
            if worker.ending_s is None and worker.silent_s > self._longest_silence_s(worker)
        }

    def overdue_beats(self, seconds: float) -> list[Beat | None]:
        """Return the last heartbeats of workers asked to end more than `seconds` ago."""
        workers = self._workers.values()
        return [
            worker.beat
            for worker in workers
            if worker.ending_s is not None and worker.ending_s > seconds
        ]

    def _longest_silence_s(self, worker: _Worker) -> float:
        if self._limit_s is not None:
            return self._limit_s
        beat = worker.beat
        if beat is not None and beat.phase == TRAINING and worker.longest_step_s > 0:
            return max(MIN_LIMIT_S, STEP_FACTOR * worker.longest_step_s)
        return max(NO_PACE_LIMIT_S, beat.quiet_s if beat is not None else 0.0)


def _add_beat(worker: _Worker, beat: Beat | None, interval_s: float) -> None:
    worker.silent_s += interval_s
    if worker.ending_s is not None:
        worker.ending_s += interval_s
    if beat is None:
        return
    last_beat, worker.beat = worker.beat, beat
    if last_beat is None or beat.trial_id != last_beat.trial_id:
        worker.longest_step_s = 0.0
    elif beat.progress == last_beat.progress:
        worker.beat_age_s = (
            worker.beat_age_s + interval_s if beat.number == last_beat.number else 0.0
        )
        return
    elif last_beat.phase == beat.phase == TRAINING:
        worker.longest_step_s = max(worker.longest_step_s, worker.silent_s)
    worker.silent_s = worker.beat_age_s = 0.0


def _stall_cause(worker: _Worker) -> str:
    cause, beat = f"it stalled for {duration(worker.silent_s)}", worker.beat
    if beat is None:
        return f"{cause} before it began"
    if worker.beat_age_s > LONGEST_LOOK_S:
        return (
            f"{cause} (all threads of its process stopped; last seen {beat.position}, {beat.line})"
        )
    return f"{cause} {beat.position} ({beat.line})"
