"""How a worker is ended that Ray cannot end, and why one ended, by what it said of itself last."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from orchestrator.cluster import machine_here
from orchestrator.worker import Beat, Ending, EndingKind, machine_memory


def explained(ending: Ending, last: Beat | None, trial_id: str | None) -> Ending:
    """The ending with where this trial was in the last beat, and what memory it had taken where
    that ran out.

    The beat may be of the trial before it. A process that was killed when its machine was full, or
    since when the kernel has killed one, ran out of memory."""
    if last is None:
        return ending
    memory = last.machine_memory
    now = machine_memory() if last.machine == machine_here() else memory
    if ending.kind is EndingKind.PROCESS_DIED and now.ran_out_since(memory):
        ending = replace(ending, kind=EndingKind.OUT_OF_MEMORY)
    text = f"{ending.cause} {last.place}" if last.trial_id == trial_id else ending.cause
    if ending.short_of_memory:
        taken, total = last.memory_bytes / 1e9, memory.total_bytes / 1e9
        text += f", with {taken:.1f} GB of the {total:.1f} GB of its machine"
    return replace(ending, text=text)


def kill_worker(last: Beat | None) -> None:
    """Kill the process that sent the beat, if it is on this machine: not another one that has its
    number by now."""
    if last is None or last.machine != machine_here():
        return
    with suppress(OSError):  # it has ended, or is another user's
        if Path(f"/proc/{last.pid}/cmdline").read_bytes().startswith(b"ray::"):
            os.kill(last.pid, signal.SIGKILL)
