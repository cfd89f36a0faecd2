"""How long each worker has given no sign of progress, and when that is too long.

Progress counts, not that a process lives. By default a training step may take ten times as long as
the longest one of the trial so far, and never less than two minutes; where there is no pace yet, or
none to be had (the start, validation, measuring), ten minutes pass, and more where the work itself
says so: a decomposition of a large matrix. So a trial whose steps take minutes goes on, and one
that hangs is ended within minutes.

Only time counts in which the driver itself looked: a laptop that slept, or a sweep that was stopped
and continued, ends no trial."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from orchestrator.schedule.study_work import POLL_S
from orchestrator.words import duration
from orchestrator.worker import Beat, Ending, EndingKind
from trainables.pulse import TRAINING

SHORTEST_S, STEPS, WITHOUT_PACE_S = 120.0, 10, 600.0
LONGEST_LOOK_S = 3 * POLL_S
"""After a longer time between two looks the driver itself stood still: of that, one usual look
counts."""


@dataclass
class _Worker:
    beat: Beat | None = None
    silent_s: float = 0.0
    longest_step_s: float = 0.0
    """Of the running trial; as it is looked at, at least the time between two looks."""
    same_beat_s: float = 0.0
    """For so long it has sent no new beat."""
    ending_s: float | None = None
    """For so long it has been about to end."""


class WorkerWatch:
    """The workers of one driver, by the names of their packs."""

    def __init__(self, limit_s: float | None) -> None:
        """`limit_s` without a sign are too long, whatever the worker does; None: as the file's head
        says."""
        self._limit_s = limit_s
        self._workers: dict[str, _Worker] = {}
        self._looked_s: float | None = None

    @property
    def keys(self) -> list[str]:
        """Of packs that have a worker."""
        return list(self._workers)

    def began(self, key: str) -> None:
        """A worker has taken the pack up."""
        self._workers[key] = _Worker()

    def ended(self, key: str) -> None:
        """The pack is over."""
        self._workers.pop(key, None)

    def ends(self, key: str) -> None:
        """The worker of this pack, if it has one, is being ended."""
        worker = self._workers.get(key)
        if worker is not None and worker.ending_s is None:
            worker.ending_s = 0.0

    def look(self, now_s: float, beats: Mapping[str, Beat]) -> None:
        """Take in the newest beats of those workers that have sent one."""
        looked_s = 0.0 if self._looked_s is None else now_s - self._looked_s
        self._looked_s = now_s
        for key, worker in self._workers.items():
            _take_in(worker, beats.get(key), POLL_S if looked_s > LONGEST_LOOK_S else looked_s)

    def standing_still(self) -> dict[str, Ending]:
        """Those that gave no sign for too long and are not being ended, by the names of their
        packs, and why."""
        return {
            key: Ending(EndingKind.STOOD_STILL, _cause(worker))
            for key, worker in self._workers.items()
            if worker.ending_s is None and worker.silent_s > self._longest_silence_s(worker)
        }

    def lingering(self, seconds: float) -> list[Beat | None]:
        """The last beats of those that should have ended so long ago."""
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
            return max(SHORTEST_S, STEPS * worker.longest_step_s)
        return max(WITHOUT_PACE_S, beat.quiet_s if beat is not None else 0.0)


def _take_in(worker: _Worker, beat: Beat | None, looked_s: float) -> None:
    worker.silent_s += looked_s
    if worker.ending_s is not None:
        worker.ending_s += looked_s
    if beat is None:
        return
    before, worker.beat = worker.beat, beat
    if before is None or beat.trial_id != before.trial_id:
        worker.longest_step_s = 0.0
    elif beat.progress == before.progress:
        worker.same_beat_s = worker.same_beat_s + looked_s if beat.number == before.number else 0.0
        return
    elif before.phase == beat.phase == TRAINING:
        worker.longest_step_s = max(worker.longest_step_s, worker.silent_s)
    worker.silent_s = worker.same_beat_s = 0.0


def _cause(worker: _Worker) -> str:
    cause, beat = f"it stood still for {duration(worker.silent_s)}", worker.beat
    if beat is None:
        return f"{cause} before it began"
    if worker.same_beat_s > LONGEST_LOOK_S:
        return (
            f"{cause} (no thread of its process ran any more; last seen {beat.place}, {beat.line})"
        )
    return f"{cause} {beat.place} ({beat.line})"
