from __future__ import annotations

from typing import Any

from orchestrator.schedule.study_work import POLL_S
from orchestrator.schedule.worker_watch import WorkerWatch
from tests.orchestrator.schedule.beats import beat_of
from trainables.pulse import START, TRAINING


class WatchedWorker:
    def __init__(self, limit_s: float | None = None) -> None:
        self.watch, self.now_s, self.number = WorkerWatch(limit_s), 0.0, 0
        self.beat = beat_of("here", phase=START, epoch=0, step=0, progress=0, number=0)
        self.watch.add("pack")
        self._look()

    def send(self, **changes: Any) -> None:
        self.beat = self.beat.model_copy(update=changes)
        self._look()

    def train(self, steps: int, step_s: float) -> None:
        for _ in range(steps):
            self.send(
                phase=TRAINING, epoch=1, step=self.beat.step + 1, progress=self.beat.progress + 1
            )
            assert self.seconds_until_stall(step_s) is None

    def seconds_until_stall(self, seconds: float, *, beats: bool = True) -> float | None:
        start_s = self.now_s
        while self.now_s < start_s + seconds:
            self.now_s += POLL_S
            self.number += beats
            self._look()
            if self.watch.stalls():
                return self.now_s - start_s
        return None

    def _look(self) -> None:
        self.watch.update(
            self.now_s, {"pack": self.beat.model_copy(update={"number": self.number})}
        )

    @property
    def cause(self) -> str:
        return self.watch.stalls()["pack"].cause


def test_hang_is_reported_in_minutes() -> None:
    worker = WatchedWorker()
    worker.train(100, step_s=POLL_S)
    assert worker.seconds_until_stall(1000) == 120
    assert worker.cause == "it stalled for 2 min in epoch 1, step 100 (my_layer.py, line 3)"


def test_slow_trial_continues() -> None:
    worker = WatchedWorker()
    worker.train(5, step_s=400)
    worker.train(1, step_s=3900)
    worker.send(progress=10**6)
    assert worker.seconds_until_stall(10**6) == 39_002


def test_default_limit_is_ten_minutes() -> None:
    worker = WatchedWorker()
    assert worker.seconds_until_stall(600) is None
    worker.train(2, step_s=600)
    worker.send(phase="in validation", progress=1000)
    assert worker.seconds_until_stall(600) is None
    worker.send(trial_id="two", phase=TRAINING, progress=1)
    assert worker.seconds_until_stall(10**4) == 602


def test_announced_silence_is_respected() -> None:
    worker = WatchedWorker()
    worker.send(phase="in the measurement spectrum@1", progress=7, quiet_s=5000.0)
    assert worker.seconds_until_stall(10**6) == 5002


def test_user_limit_covers_every_phase() -> None:
    worker = WatchedWorker(limit_s=20.0)
    worker.send(quiet_s=5000.0)
    assert worker.seconds_until_stall(100) == 22
    worker = WatchedWorker(limit_s=2000.0)
    worker.train(10, step_s=1900)


def test_blocked_process_is_named() -> None:
    worker = WatchedWorker()
    assert worker.seconds_until_stall(1000, beats=False) == 602
    assert worker.cause == (
        "it stalled for 10 min (all threads of its process stopped; last seen at its start, "
        "my_layer.py, line 3)"
    )


def test_worker_without_beats_is_ended() -> None:
    watch = WorkerWatch(10.0)
    watch.add("pack")
    for second in range(0, 14, 2):
        watch.update(float(second), {})
    assert watch.stalls()["pack"].cause == "it stalled for 12 s before it began"


def test_stalled_driver_ends_no_trial() -> None:
    """A suspended driver, for example on a sleeping laptop, receives no heartbeats for hours."""
    worker = WatchedWorker(limit_s=20.0)
    for _ in range(5):
        worker.now_s += 10_000.0
        assert worker.seconds_until_stall(POLL_S) is None
        worker.send(progress=worker.beat.progress + 1)
        assert worker.seconds_until_stall(3 * POLL_S) is None


def test_worker_stays_until_pack_ends() -> None:
    worker = WatchedWorker(limit_s=20.0)
    assert worker.seconds_until_stall(100) == 22
    worker.watch.mark_ending("pack")
    assert worker.seconds_until_stall(10) is None
    assert worker.watch.overdue_beats(10.0) == []
    assert worker.seconds_until_stall(2) is None
    (last,) = worker.watch.overdue_beats(10.0)
    assert last == worker.beat.model_copy(update={"number": worker.number})
    worker.watch.remove("pack")
    assert worker.watch.overdue_beats(0.0) == []
