"""Send heartbeats from a thread of a worker process."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from orchestrator.worker.memory import MachineMemory, machine_memory
from trainables.config import Frozen
from trainables.errors import line_of
from trainables.measurements import status_mib
from trainables.pulse import PULSE, TRAINING

# A beat is sent every `BEAT_S`, and within `LOOK_S` of a new phase.
BEAT_S, LOOK_S = 2.0, 0.25
DIES_WITH_PARENT = 1


class Beat(Frozen):
    """A heartbeat: the progress and state of a worker."""

    number: int
    """Number of heartbeats so far. If it stops growing, no thread of the process runs."""
    trial_id: str
    phase: str
    epoch: int
    """`epoch` and `step` count from 1; both are 0 outside of training."""
    step: int
    progress: int
    quiet_s: float
    """Seconds that the current work may take without progress."""
    line: str
    """Line of code that the worker is running, preferably in the user's own code."""
    memory_bytes: int
    """Peak resident memory since the trial began."""
    machine_memory: MachineMemory
    machine: str
    """Ray's node id."""
    pid: int

    @property
    def position(self) -> str:
        """Position in the trial as a phrase, such as "in epoch 2, step 7"."""
        return f"in epoch {self.epoch}, step {self.step}" if self.phase == TRAINING else self.phase


@contextmanager
def beating(
    send: Callable[[bytes], None], machine: str, code_files: Sequence[str]
) -> Iterator[None]:
    """Send heartbeats (JSON) about this thread until the context ends, and once at the end.

    Forked processes send no heartbeats, and are killed when this process ends.
    """
    if sys.platform == "linux":
        _end_forks_with_their_parent()
    PULSE.begin("")
    stop_event, worker, pid = threading.Event(), threading.get_ident(), os.getpid()

    def beat() -> None:
        number, sent_s, sent_phase = 0, 0.0, ("", "")
        while True:
            is_last, phase = stop_event.is_set(), (PULSE.trial_id, PULSE.phase)
            if is_last or phase != sent_phase or time.monotonic() - sent_s >= BEAT_S:
                number, sent_s, sent_phase = number + 1, time.monotonic(), phase
                send(_beat(number, worker, machine, code_files).model_dump_json().encode())
            if is_last:
                return
            stop_event.wait(LOOK_S)

    thread = threading.Thread(target=beat, name="beats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        if os.getpid() == pid:
            stop_event.set()
            thread.join()


def _beat(number: int, worker: int, machine: str, code_files: Sequence[str]) -> Beat:
    stack = traceback.walk_stack(sys._current_frames()[worker])
    positions = [(frame.f_code.co_filename, line) for frame, line in stack]
    return Beat(
        number=number,
        trial_id=PULSE.trial_id,
        phase=PULSE.phase,
        epoch=PULSE.epoch,
        step=PULSE.step,
        progress=PULSE.count,
        quiet_s=PULSE.quiet_s,
        line=line_of(positions, code_files) or line_of(positions) or "",
        memory_bytes=round(2**20 * (status_mib("VmHWM") or 0.0)),
        machine_memory=machine_memory(),
        machine=machine,
        pid=os.getpid(),
    )


@cache
def _end_forks_with_their_parent() -> None:
    # A process that an output layer forked holds a lock, so it must end with the trial.
    libc = ctypes.CDLL(None)
    os.register_at_fork(after_in_child=lambda: libc.prctl(DIES_WITH_PARENT, signal.SIGKILL))
