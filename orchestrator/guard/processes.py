"""The guarded process and all that it starts: made, listed, ended."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from pathlib import Path

from orchestrator.guard.inside import run_inside
from orchestrator.guard.leftovers import remove_leftovers
from orchestrator.guard.proc import process_stat

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
END_S = 3.0
"""So long a killed process may take to go: one that waits for a dead disk does not go at all."""


def adopt_orphans() -> None:
    """From now on whatever loses its parent below this process becomes its child, and can be ended
    by it."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(run: Callable[[], int], *, again: bool) -> tuple[int, int]:
    """Run in a process and session of its own, which dies with this one; returns its id and the
    pipe it tells on."""
    reading, writing = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    guard = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guard:
            os._exit(1)
        # A terminal's signals reach the guard alone, and it decides.
        os.setsid()
        run_inside(run, writing, again=again)
    os.close(writing)
    _clean_up_after(pid, guard)
    return pid, reading


def _clean_up_after(pid: int, guard: int) -> None:
    """Fork a process that removes what the command leaves if its guard is killed: Ray's processes
    may run on."""
    if os.fork() == 0:
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(
                PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0
            )  # a paused guard has paused this process
            select.select([os.pidfd_open(pid)], [], [])
            if os.getppid() != guard:
                remove_leftovers()
        finally:
            os._exit(0)


def below(pid: int, strangers: Collection[int] = ()) -> Iterator[int]:
    """The processes that this one started, with those that they started, and so on, but for
    `strangers` and theirs."""
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                if child not in strangers:
                    yield child
                    yield from below(child, strangers)


def signal_all_below(number: int, strangers: Collection[int]) -> int:
    """Send a signal to all below this process but `strangers` and theirs; returns how many there
    were."""
    pids = list(below(os.getpid(), strangers))
    for pid in pids:
        with suppress(OSError):  # it has ended, or is another user's
            os.kill(pid, number)
    return len(pids)


def end_all_below(strangers: Collection[int]) -> None:
    """Kill all below this process but `strangers`, and wait for their end; what is left then is
    beyond killing."""
    deadline_s = time.monotonic() + END_S
    while signal_all_below(signal.SIGKILL, strangers) and time.monotonic() < deadline_s:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def is_stopped(pid: int) -> bool:
    """Whether somebody has stopped the process, a debugger for one."""
    return _state(pid) in ("T", "t")


def waits_for_a_disk(pid: int) -> bool:
    """Whether one does not answer the process."""
    return _state(pid) == "D"


def _state(pid: int) -> str | None:
    with suppress(OSError):
        stat = process_stat(pid)
        return stat and stat.state
    return None
