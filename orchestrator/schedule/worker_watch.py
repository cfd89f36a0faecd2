"""Detection of workers without progress.

By default a training step may take ten times the trial's longest step so far, and at least two
minutes. Other work (start, validation, measuring) may take ten minutes, or longer if announced.
Time in which the driver was suspended does not count: a laptop's sleep ends no trial.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.schedule.study_work import POLL_S
from orchestrator.words import duration
from orchestrator.worker import Beat, Ending, EndingKind
from trainables.pulse import TRAINING

MIN_LIMIT_S, STEP_FACTOR, NO_PACE_LIMIT_S = 120.0, 10, 600.0
LONGEST_LOOK_S = 3 * POLL_S
"""A longer gap between looks (the driver was suspended) counts as one interval."""


@dataclass
class _Worker:
    beat: Beat | None = None
    silent_s: float = 0.0
    longest_step_s: float = 0.0
    beat_age_s: float = 0.0
    ending_s: float | None = None
    """Time since the worker's end was requested."""


class WorkerWatch:
    """Workers of one driver, by pack name."""

    def __init__(self, limit_s: float | None) -> None:
        """Limit time without progress to `limit_s` in any phase; None applies the defaults."""
        self._limit_s = limit_s
        self._workers: dict[str, _Worker] = {}
        self._last_look_s: float | None = None

    @property
    def keys(self) -> list[str]:
        """Packs with a worker."""
        return list(self._workers)

    def add(self, key: str) -> None:
        """Watch the pack's worker."""
        self._workers[key] = _Worker()

    def remove(self, key: str) -> None:
        """Forget the pack."""
        self._workers.pop(key, None)

    def mark_ending(self, key: str) -> None:
        """Mark the worker as ending."""
        worker = self._workers.get(key)
        if worker is not None and worker.ending_s is None:
            worker.ending_s = 0.0

    def update(self, now_s: float, beats: Mapping[str, Beat]) -> None:
        """Process heartbeats by pack name."""
        interval_s = 0.0 if self._last_look_s is None else now_s - self._last_look_s
        self._last_look_s = now_s
        for key, worker in self._workers.items():
            _add_beat(worker, beats.get(key), POLL_S if interval_s > LONGEST_LOOK_S else interval_s)

    def stalls(self) -> dict[str, Ending]:
        """Return endings of newly stalled workers."""
        return {
            key: Ending(EndingKind.STALLED, _stall_cause(worker))
            for key, worker in self._workers.items()
            if worker.ending_s is None and worker.silent_s > self._longest_silence_s(worker)
        }

    def overdue_beats(self, seconds: float) -> list[Beat | None]:
        """Return last beats of workers whose end was requested more than `seconds` ago."""
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
