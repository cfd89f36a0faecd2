"""The guarded process: its reports to the guard, and its signals.

Without a guard (in notebooks and tests) nothing is reported, and signals act as usual.
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
"""Exit status that asks the guard for a new process, because this process cannot recover."""


class Word(StrEnum):
    """First word of a line to the guard."""

    BEAT = "beat"
    WAIT = "wait"
    """Followed by the longest time to the next beat, in seconds."""
    REST = "rest"
    """Beats are no longer expected."""
    STOPPING = "stopping"
    TRIAL_ENDED = "ended"
    LEFT = "left"
    """The command reached its own last line."""
    REASON = "reason"
    SIGNAL = "signal"


@dataclass
class _Process:
    pipe: int | None = None
    is_restart: bool = False
    sends_beats: bool = False
    is_over: bool = False
    """The command ended or was interrupted; later signals change nothing."""
    is_dropping: bool = False


_STATE = _Process()


def end_signals() -> list[signal.Signals]:
    """Return the signals to handle: all, except SIGHUP under `nohup`."""
    return [
        number
        for number in SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]


def is_guarded() -> bool:
    """Return whether a guard decides what a second signal does."""
    return _STATE.pipe is not None


def was_started_again() -> bool:
    """Return whether an earlier process of this command died."""
    return _STATE.is_restart


def beat() -> None:
    """Report that the sweep makes progress; see `watched`."""
    _STATE.sends_beats = True
    _send(Word.BEAT)


def beat_on() -> None:
    """Beat while waiting for another process, if beats are expected."""
    if _STATE.sends_beats:
        _send(Word.BEAT)


@contextmanager
def watched() -> Iterator[None]:
    """Have the guard restart a stalled sweep. Call `beat` several times a second in the context."""
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
    """Allow unlimited time without a beat."""
    _STATE.sends_beats = False
    _send(Word.REST)


def report_stopping() -> None:
    """Report that the user knows about the stop; the guard then does not announce it."""
    _send(Word.STOPPING)


def report_signal(number: int) -> None:
    """Report the signal that asked for the end. The signal decides the exit status.

    The signal may have reached only this process. On SIGHUP, leave the closed terminal.
    """
    _send(f"{Word.SIGNAL} {number}")
    if number == signal.SIGHUP:
        leave_terminal()


def trial_ended() -> None:
    """Report that a trial ended, which counts as progress."""
    _send(Word.TRIAL_ENDED)


def start_again(reason: str) -> None:
    """Have the guard restart the command, for `reason`. Returns if there is no guard."""
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
    """Send the interrupt again if Python dropped it, as it drops all errors of finalizers."""
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
