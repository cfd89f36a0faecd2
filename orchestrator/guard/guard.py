"""The guard of a command: a parent process, so simple that it cannot hang.

The process that the user starts is the guard. The command runs in a child process with its own
session. The guard answers signals within a second and ends all processes within ten. It restarts a
sweep that stalls or crashes.
"""

from __future__ import annotations

import os
import select
import signal
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from orchestrator.guard.inside import (
    INTERRUPTED,
    RESTART_STATUS,
    SIGNALS,
    Word,
    end_signals,
    leave_terminal,
)
from orchestrator.guard.leftovers import remove_leftovers
from orchestrator.guard.processes import (
    adopt_orphans,
    descendants,
    kill_descendants,
    signal_descendants,
    start,
    state,
)

LOOK_S = 0.1
ANSWER_S = 0.7
"""The guard announces the stop this long after a signal, if the command has not."""
LATE_SIGNAL_S = 0.5
"""The guard may receive a signal this long after the other processes."""
STOP_S = 8.0
"""A command that still runs this long after a signal is killed."""
REPEAT_S = {signal.SIGINT: 0.2, signal.SIGTERM: 1.0, signal.SIGHUP: 1.0}
"""A signal repeated within this time counts once: `timeout` signals a process, then its group."""
STALL_S = 60.0
"""A sweep has stalled if it sends no beat, its sign of progress, for this long."""
MAX_STARTS = 3
"""The guard gives up after this many starts in a row without an ended trial."""
JOB_CONTROL = (signal.SIGTSTP, signal.SIGCHLD)
CRASH_SIGNALS = (signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE)
GIVEN_UP_STATUS = 5
STOPPED_STATES = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
ORDERLY_STATUSES = (0, 1, 2)
"""Exit statuses of a command that has removed its temporary files."""
RESUME_HINT = "Results and checkpoints are kept; run the same command again to resume."


def guarded(run: Callable[[], int]) -> int:
    """Run a command in a child process under a guard; return its exit status.

    Without Linux's /proc, run it in this process, in which signals act as usual.
    """
    if not Path("/proc/self").exists():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)  # sweep.py has blocked them
        return run()
    # If our parent ignores SIGCHLD, the kernel reaps our children and loses their exit statuses.
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signals = end_signals()
    signal.pthread_sigmask(signal.SIG_BLOCK, [*signals, *JOB_CONTROL])
    adopt_orphans()
    # Processes started by the shell that became this process are not ours to end.
    strangers = descendants()
    starts = 0
    is_restart = False
    while True:
        command = _Command(*start(run, is_restart=is_restart), signals, strangers)
        status = command.end()
        is_restart, starts = True, 0 if command.has_progress else starts + 1
        kill_descendants(strangers)
        if status not in ORDERLY_STATUSES:
            _show_cursor()
            remove_leftovers()
        if command.restart_reason is None or command.stop_signal is not None:
            return status
        if starts >= MAX_STARTS:
            count = f"This happened {starts} times, and no trial ended in between."
            _print_line(f"error: {command.restart_reason}. {count} {RESUME_HINT}")
            return GIVEN_UP_STATUS
        _print_line(f"{command.restart_reason}. Restarting the sweep.")


@dataclass
class _Command:
    pid: int
    pipe: int
    signals: list[signal.Signals]
    strangers: Collection[psutil.Process]
    stop_signal: signal.Signals | None = None
    restart_reason: str | None = None
    has_progress: bool = False
    _received_signal: signal.Signals | None = None
    _stop_s: float = 0.0
    _is_announced: bool = False
    _ended_itself: bool = False
    _patience_s: float | None = None
    """Allowed time without a beat; None outside a sweep."""
    _last_beat_s: float = 0.0
    _text: bytes = b""
    _reason: str = "The sweep's process requested a restart"

    def end(self) -> int:
        while True:
            number = self._next_signal()
            if number == signal.SIGTSTP:
                self._pause()
            elif number in self.signals and number is not None and self._forward_signal(number):
                return self._kill("Ended at once.")
            wait_status = self._reap()
            self._read_pipe()
            if wait_status is not None:
                os.close(self.pipe)
                status = os.waitstatus_to_exitcode(wait_status)
                if not self._ended_itself or status == INTERRUPTED:
                    self._wait_for_a_late_signal()
                return self._exit_status(status)
            if self.stop_signal is not None and self._is_overdue():
                return self._kill(f"The command did not stop within {STOP_S:g} s and was killed.")
            if self.stop_signal is None and self._is_stalled():
                return self._kill("")

    def _wait_for_a_late_signal(self) -> None:
        """A signal to all processes may end Ray, and thus the command, before the guard gets it."""
        late_s = time.monotonic() + LATE_SIGNAL_S
        while self.stop_signal is None and time.monotonic() < late_s:
            pending_signals = [number for number in self.signals if number in signal.sigpending()]
            self.stop_signal = pending_signals[0] if pending_signals else None
            time.sleep(0.01)

    def _next_signal(self) -> signal.Signals | None:
        """Poll, because `sigtimedwait` can return a wrong signal number after a suspension."""
        select.select([self.pipe], [], [], LOOK_S)
        for number in signal.sigpending():
            if number in (*self.signals, *JOB_CONTROL):
                return signal.Signals(signal.sigwait([number]))
        return None

    def _forward_signal(self, number: signal.Signals) -> bool:
        now_s = time.monotonic()
        if self.stop_signal is not None:
            return now_s - self._stop_s > REPEAT_S[number]
        self.stop_signal, self._stop_s = number, now_s
        if number == signal.SIGHUP:
            leave_terminal()
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)
        return False

    def _is_overdue(self) -> bool:
        waiting_s = time.monotonic() - self._stop_s
        if waiting_s >= ANSWER_S and not self._is_announced:
            self._is_announced = True
            _print_line(
                "Stopping, which may take 10 s; results and checkpoints are kept. Repeat the "
                "signal (Ctrl-C) to end at once."
            )
        return waiting_s >= STOP_S

    def _is_stalled(self) -> bool:
        if self._patience_s is None:
            return False
        now_s, process_state = time.monotonic(), state(self.pid)
        # A process that is stopped (e.g. by a debugger) or blocked by a pager gets its full time
        # once it can continue.
        if process_state in STOPPED_STATES or not (_is_writable(1) and _is_writable(2)):
            self._last_beat_s = now_s
        if now_s - self._last_beat_s < self._patience_s:
            return False
        if process_state == psutil.STATUS_DISK_SLEEP:
            self._last_beat_s = now_s
            return False
        self.restart_reason = f"The sweep stalled for {self._patience_s:g} s"
        return True

    def _kill(self, reason: str) -> int:
        kill_descendants(self.strangers)
        self._read_pipe()
        os.close(self.pipe)
        if self.stop_signal is None:
            return RESTART_STATUS
        _print_line(f"{reason} {RESUME_HINT}")
        return 128 + self.stop_signal

    def _exit_status(self, status: int) -> int:
        if status == INTERRUPTED:
            self.stop_signal = self.stop_signal or self._received_signal
        if self.stop_signal is not None:
            if status not in (0, INTERRUPTED):
                _print_line(f"Interrupted. {RESUME_HINT}")
            return 128 + self.stop_signal
        is_sweep = self._patience_s is not None
        if status == RESTART_STATUS:
            self.restart_reason = self._reason
        elif -status in CRASH_SIGNALS and is_sweep:
            self.restart_reason = f"The sweep's process crashed ({signal.Signals(-status).name})"
        elif status >= 0 and is_sweep and not self._ended_itself:
            self.restart_reason = f"The sweep's process ended unexpectedly, with status {status}"
        elif status < 0:
            was_killed = status == -signal.SIGKILL
            hint = " (by a user, or by the system if memory ran out)" if was_killed else ""
            _print_line(
                f"error: the command's process was killed by {signal.Signals(-status).name}{hint}. "
                f"{RESUME_HINT}"
            )
        return status if status >= 0 else 128 - status

    def _reap(self) -> int | None:
        with suppress(ChildProcessError):
            while True:
                pid, wait_status = os.waitpid(-1, os.WNOHANG)
                if pid == self.pid:
                    return wait_status
                if pid == 0:
                    break
        return None

    def _read_pipe(self) -> None:
        with suppress(BlockingIOError):
            while chunk := os.read(self.pipe, 65536):
                self._text += chunk
        *lines, self._text = self._text.split(b"\n")
        for line in lines:
            word, _, argument = line.decode().partition(" ")
            match word:
                case Word.BEAT | Word.WAIT:
                    self._patience_s = float(argument or STALL_S)
                    self._last_beat_s = time.monotonic()
                case Word.REST:
                    self._patience_s = None
                case Word.STOPPING:
                    self._is_announced = True
                case Word.TRIAL_ENDED:
                    self.has_progress = True
                case Word.LEFT:
                    self._ended_itself = True
                case Word.SIGNAL:
                    self._received_signal = self._received_signal or signal.Signals(int(argument))
                case Word.REASON:
                    self._reason = argument

    def _pause(self) -> None:
        signal_descendants(signal.SIGSTOP, self.strangers)
        os.kill(os.getpid(), signal.SIGSTOP)
        signal_descendants(signal.SIGCONT, self.strangers)
        self._last_beat_s = time.monotonic()


def _is_writable(stream: int) -> bool:
    with suppress(OSError, ValueError):
        return bool(select.select([], [stream], [], 0)[1])
    return True


def _print_line(text: str) -> None:
    with suppress(OSError):
        if _is_writable(2):
            os.write(2, f"{text}\n".encode())


def _show_cursor() -> None:
    with suppress(OSError):
        if os.isatty(1) and _is_writable(1):
            os.write(1, b"\r\x1b[K\x1b[?25h")
