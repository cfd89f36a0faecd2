"""The guarded process: reports to the guard, and signal handling.

Without a guard (in notebooks and tests), reports are dropped and signals act as usual.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a command to end."""
INTERRUPTED = 130
RESTART_STATUS = 75
"""Exit status that asks the guard to restart the command in a new process."""


class Word(StrEnum):
    """First word of each line that the command sends to the guard."""

    BEAT = "beat"
    WAIT = "wait"
    """`wait SECONDS`: longest time to the next beat."""
    REST = "rest"
    """No more beats will follow."""
    STOPPING = "stopping"
    TRIAL_ENDED = "ended"
    LEFT = "left"
    """The command ran to its end."""
    REASON = "reason"
    SIGNAL = "signal"


@dataclass
class _Process:
    pipe: int | None = None
    is_restart: bool = False
    sends_beats: bool = False
    is_over: bool = False
    """True after the command's end or first interrupt. Later signals then change nothing."""
    is_dropping: bool = False


_STATE = _Process()


def end_signals() -> list[signal.Signals]:
    """Return `SIGNALS`, without SIGHUP under `nohup`."""
    return [
        number
        for number in SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]


def is_guarded() -> bool:
    """Return whether this process runs under a guard."""
    return _STATE.pipe is not None


def was_started_again() -> bool:
    """Return whether the guard restarted this command."""
    return _STATE.is_restart


def beat() -> None:
    """Report to the guard that the sweep makes progress. See `watched`."""
    _STATE.sends_beats = True
    _send(Word.BEAT)


def beat_on() -> None:
    """Send a beat while waiting for another process, if the guard expects beats."""
    if _STATE.sends_beats:
        _send(Word.BEAT)


@contextmanager
def watched() -> Iterator[None]:
    """Have the guard restart a sweep that stalls in this context.

    Call `beat` several times a second.
    """
    beat()
    try:
        yield
    finally:
        stop_beating()


@contextmanager
def patient(seconds: float) -> Iterator[None]:
    """Allow a watched sweep `seconds` without a beat, within the context."""
    sends_beats, _STATE.sends_beats = _STATE.sends_beats, False
    if sends_beats:
        _send(f"{Word.WAIT} {seconds}")
    try:
        yield
    finally:
        if sends_beats:
            beat()


def stop_beating() -> None:
    """Report that no more beats will follow. The guard then waits without a limit."""
    _STATE.sends_beats = False
    _send(Word.REST)


def report_stopping() -> None:
    """Report that the command has announced its stop, so that the guard does not."""
    _send(Word.STOPPING)


def report_signal(number: int) -> None:
    """Report a stop signal to the guard, which may not have received it.

    The signal decides the exit status. SIGHUP also detaches this process from its closed terminal.
    """
    _send(f"{Word.SIGNAL} {number}")
    if number == signal.SIGHUP:
        leave_terminal()


def trial_ended() -> None:
    """Report that a trial ended, which counts as progress."""
    _send(Word.TRIAL_ENDED)


def start_again(reason: str) -> None:
    """Have the guard print `reason` and restart the command. Does nothing without a guard."""
    if is_guarded():
        _send(f"{Word.REASON} {' '.join(reason.split())}")
        # Streams are not flushed: a reader that does not read would block this process.
        os._exit(RESTART_STATUS)


def run_inside(run: Callable[[], int], pipe: int, *, is_restart: bool) -> NoReturn:
    """Run the command and exit with its status."""
    _STATE.pipe, _STATE.is_restart = pipe, is_restart
    sys.unraisablehook = _restore_interrupt
    for number in end_signals():
        signal.signal(number, _interrupt)
    try:
        # A signal that was pending until now interrupts here.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        status = run()
        _STATE.is_over = True
    except BaseException as error:
        if _STATE.is_over:  # Python's import system turns some interrupts into other errors
            cause = "" if isinstance(error, KeyboardInterrupt) else f" ({error!r})"
            with suppress(OSError, KeyboardInterrupt):
                print(f"Interrupted{cause}. Run the same command again to resume.", file=sys.stderr)
            status = INTERRUPTED
        else:  # like the interpreter
            _STATE.is_over = True
            sys.excepthook(*sys.exc_info())
            status = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    _send(Word.LEFT)
    # During the interpreter's own shutdown, a thread or a late signal could change the status.
    os._exit(status)


def leave_terminal() -> None:
    """Detach from the closed terminal, so that output does not fail."""
    null_device = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if os.isatty(stream):
            os.dup2(null_device, stream)
    os.close(null_device)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    report_signal(number)
    if not _STATE.is_over:
        _STATE.is_over = True
        raise KeyboardInterrupt


def _restore_interrupt(unraisable: sys.UnraisableHookArgs) -> None:
    """Send an interrupt again that Python dropped, as it drops all errors in finalizers."""
    if unraisable.exc_type is KeyboardInterrupt:
        _STATE.is_dropping = True
        threading.Thread(target=_resend_interrupt).start()
        _STATE.is_dropping = False  # last step: Python runs no signal handler from here to the end
    else:
        sys.__unraisablehook__(unraisable)


def _resend_interrupt() -> None:
    while _STATE.is_dropping:
        time.sleep(0.01)
    _STATE.is_over = False
    os.kill(os.getpid(), signal.SIGINT)


def _send(line: str) -> None:
    if _STATE.pipe is not None:
        # A suspended guard does not read; a dead guard has ended this process, too.
        with suppress(OSError):
            os.write(_STATE.pipe, f"{line}\n".encode())
