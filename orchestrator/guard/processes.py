"""Start, list and end the guarded process and its descendants."""

from __future__ import annotations

import ctypes
import os
import select
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress

import psutil

from orchestrator.guard.inside import run_inside
from orchestrator.guard.leftovers import remove_leftovers

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# A process that waits for a dead disk cannot be killed.
END_S = 3.0


def adopt_orphans() -> None:
    """Make this process the parent of orphaned descendants."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def start(run: Callable[[], int], *, is_restart: bool) -> tuple[int, int]:
    """Fork a process in its own session that calls `run` and dies with this process.

    Returns its process id, and the read end of the pipe for its reports.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    guard = os.getpid()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != guard:
            os._exit(1)
        # The terminal's signals reach only the guard, which decides.
        os.setsid()
        run_inside(run, write_end, is_restart=is_restart)
    os.close(write_end)
    _clean_up_after(pid, guard)
    return pid, read_end


def _clean_up_after(pid: int, guard: int) -> None:
    """Fork a process that cleans up if the guard is killed, since Ray's processes may survive."""
    if os.fork() == 0:
        try:
            os.setsid()
            # A paused guard has suspended this process, too.
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
            select.select([os.pidfd_open(pid)], [], [])
            if os.getppid() != guard:
                remove_leftovers()
        finally:
            os._exit(0)


def descendants(strangers: Collection[psutil.Process] = ()) -> set[psutil.Process]:
    """Return this process's descendants, without `strangers` and their descendants."""
    processes = _descendants_of(psutil.Process())
    return processes.difference(strangers, *map(_descendants_of, strangers))


def _descendants_of(process: psutil.Process) -> set[psutil.Process]:
    with suppress(psutil.NoSuchProcess):
        return set(process.children(recursive=True))
    return set()


def signal_descendants(number: int, strangers: Collection[psutil.Process]) -> int:
    """Signal the processes in `descendants(strangers)`; return their number."""
    processes = descendants(strangers)
    for process in processes:
        with suppress(psutil.Error):  # it has ended, or belongs to another user
            process.send_signal(number)
    return len(processes)


def kill_descendants(strangers: Collection[psutil.Process]) -> None:
    """Kill the processes in `descendants(strangers)`, and wait at most `END_S`."""
    deadline_s = time.monotonic() + END_S
    while signal_descendants(signal.SIGKILL, strangers) and time.monotonic() < deadline_s:
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def state(pid: int) -> str | None:
    """Return the process's psutil status; None if it has ended."""
    with suppress(psutil.Error):
        return str(psutil.Process(pid).status())
    return None
