"""Progress of this process, for the thread that watches it, and threads that repeat a task.

A process has one trial at a time, so there is one pulse. Recording takes no lock or system call.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

START, TRAINING = "at its start", "in training"
SLOWEST_FLOPS = 3e8
"""LAPACK's FLOP/s on the slowest host; used to limit a worker's time without progress."""
SLOWEST_GPU_FLOPS = 1e11
"""FLOP/s of the slowest GPU in float64."""


class Pulse:
    """Current phase of a trial, and a counter that rises with any progress."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, trial_id: str) -> None:
        """Reset the pulse for a new trial."""
        self.trial_id, self.count = trial_id, 0
        self.epoch = self.step = 0
        self.enter(START)

    def enter(self, phase: str, quiet_s: float = 0.0) -> None:
        """Enter a phase. Its name follows "last seen" in messages; for `quiet_s`, see `touch`."""
        self.phase = phase
        self.touch(quiet_s)

    def begin_step(self, epoch: int, step: int) -> None:
        """Enter a training step. Both numbers start at 1; steps count over all epochs."""
        self.epoch, self.step = epoch, step
        self.enter(TRAINING)

    def touch(self, quiet_s: float = 0.0) -> None:
        """Record progress. The slowest host may take `quiet_s` seconds until the next call."""
        self.quiet_s = quiet_s
        self.count += 1


PULSE = Pulse()


@contextmanager
def repeated(action: Callable[[], object], every_s: float) -> Iterator[None]:
    """Call `action` in a thread every `every_s` seconds, until the context ends."""
    end = threading.Event()

    def repeat() -> None:
        while not end.wait(every_s):
            action()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()
