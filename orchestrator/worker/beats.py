"""Heartbeats: again and again a worker says how far it has come, from a thread of its own, while it
is at a pack."""

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

BEAT_S, LOOK_S = 2.0, 0.25
"""A beat goes out so often, and where the work has come to another phase, as soon as that is
seen."""
DIES_WITH_PARENT = 1
"""PR_SET_PDEATHSIG of Linux' prctl."""


class Beat(Frozen):
    """What a worker says of itself."""

    number: int
    """Of this beat; one that stays shows that the process lets no thread of its own run."""
    trial_id: str
    phase: str
    epoch: int
    """With `step` counted from 1; 0 outside of training."""
    step: int
    progress: int
    """Grows with every sign of progress of this trial."""
    quiet_s: float
    """So long the work may go on now without one."""
    line: str
    """The innermost line that the work stands at, of the user's own layer where it is in one:
    "my_layer.py, line 3"."""
    memory_bytes: int
    """The most that was resident since the trial began."""
    machine_memory: MachineMemory
    machine: str
    """Ray's id of it."""
    pid: int

    @property
    def place(self) -> str:
        """Where in the trial it is, to stand behind "it stood still"."""
        return f"in epoch {self.epoch}, step {self.step}" if self.phase == TRAINING else self.phase


@contextmanager
def beating(
    send: Callable[[bytes], None], machine: str, layer_files: Sequence[str]
) -> Iterator[None]:
    """Send beats, as JSON, of what this thread works at, for so long; the last one when it is over.

    A process that the work forks from this one sends none, and ends with it.
    """
    if sys.platform == "linux":
        _end_forks_with_their_parent()
    PULSE.begin("")
    over, worker, pid = threading.Event(), threading.get_ident(), os.getpid()

    def beat() -> None:
        number, sent_s, sent_phase = 0, 0.0, ("", "")
        while True:
            last, phase = over.is_set(), (PULSE.trial_id, PULSE.phase)
            if last or phase != sent_phase or time.monotonic() - sent_s >= BEAT_S:
                number, sent_s, sent_phase = number + 1, time.monotonic(), phase
                send(_beat(number, worker, machine, layer_files).model_dump_json().encode())
            if last:
                return
            over.wait(LOOK_S)

    thread = threading.Thread(target=beat, name="beats", daemon=True)
    thread.start()
    try:
        yield
    finally:
        if os.getpid() == pid:
            over.set()
            thread.join()


def _beat(number: int, worker: int, machine: str, layer_files: Sequence[str]) -> Beat:
    stack = traceback.walk_stack(sys._current_frames()[worker])
    places = [(frame.f_code.co_filename, line) for frame, line in stack]
    return Beat(
        number=number,
        trial_id=PULSE.trial_id,
        phase=PULSE.phase,
        epoch=PULSE.epoch,
        step=PULSE.step,
        progress=PULSE.count,
        quiet_s=PULSE.quiet_s,
        line=line_of(places, layer_files) or line_of(places) or "",
        memory_bytes=round(2**20 * (status_mib("VmHWM") or 0.0)),
        machine_memory=machine_memory(),
        machine=machine,
        pid=os.getpid(),
    )


@cache
def _end_forks_with_their_parent() -> None:
    """Once in a process: what an output layer forks must not outlive the trial, whose folder's lock
    it holds, too."""
    libc = ctypes.CDLL(None)
    os.register_at_fork(after_in_child=lambda: libc.prctl(DIES_WITH_PARENT, signal.SIGKILL))
