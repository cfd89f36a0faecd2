"""How far the work of this process has come: said by whoever works, read by whoever watches over
it.

One trial is at work in a process at a time, so there is one pulse. To say something takes no lock
and no system call."""

from __future__ import annotations

START, TRAINING = "at its start", "in training"
SLOWEST_FLOPS = 3e8
"""Floating-point operations a second that LAPACK makes on the slowest machine: by this the longest
stretches of work that give no sign are judged."""
SLOWEST_GPU_FLOPS = 1e11
"""What `SLOWEST_FLOPS` is, for a GPU in float64."""


class Pulse:
    """What this process is at, and a count that grows with every sign of progress."""

    def __init__(self) -> None:
        self.begin("")

    def begin(self, trial_id: str) -> None:
        """Another trial is taken up."""
        self.trial_id, self.count = trial_id, 0
        self.epoch = self.step = 0
        self.enter(START)

    def enter(self, phase: str, quiet_s: float = 0.0) -> None:
        """The work comes to this phase, as it stands behind "it stood still"; `quiet_s` as for
        `touch`."""
        self.phase = phase
        self.touch(quiet_s)

    def begin_step(self, epoch: int, step: int) -> None:
        """Training begins this step of this epoch, both counted from 1, steps over all epochs."""
        self.epoch, self.step = epoch, step
        self.enter(TRAINING)

    def touch(self, quiet_s: float = 0.0) -> None:
        """The work goes on, and what comes now may take `quiet_s` seconds without a sign on the
        slowest machine."""
        self.quiet_s = quiet_s
        self.count += 1


PULSE = Pulse()
"""Of this process."""
