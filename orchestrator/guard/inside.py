"""Inside the guarded process: what it tells its guard, and how a signal reaches it.

Without a guard (in a notebook, in tests) nothing is told, and signals do what they did before.
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
"""What asks a command to end."""
INTERRUPTED = 130
AGAIN = 75
"""The exit status that asks the guard for a fresh process: what died cannot be fixed in this
one."""


class Word(StrEnum):
    """The first words of the lines on the pipe to the guard."""

    BEAT = "beat"
    WAIT = "wait"
    """Followed by the seconds that may pass until the next beat."""
    REST = "rest"
    """No beat has to follow."""
    STOPPING = "stopping"
    TRIAL_ENDED = "ended"
    LEFT = "left"
    """The command has come to its own last line."""
    REASON = "reason"
    SIGNAL = "signal"


@dataclass
class _Here:
    """What this process knows of itself and its guard."""

    pipe: int | None = None
    again: bool = False
    beats: bool = False
    over: bool = False
    """A signal has ended the command, or it has ended: another signal changes nothing."""
    dropping: bool = False
    """Python drops exceptions now."""


_HERE = _Here()


def end_signals() -> list[signal.Signals]:
    """Return the signals to answer: all of them, but no SIGHUP under `nohup`."""
    return [
        number
        for number in SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]


def is_guarded() -> bool:
    """Return whether this process has a guard, which alone decides what a second signal does."""
    return _HERE.pipe is not None


def was_started_again() -> bool:
    """Return whether a process of this same command went before, and died."""
    return _HERE.again


def beat() -> None:
    """Tell the guard that the sweep moves; see `watched`."""
    _HERE.beats = True
    _tell(Word.BEAT)


def beat_on() -> None:
    """Beat while this process waits for something else, if the guard expects a beat."""
    if _HERE.beats:
        _tell(Word.BEAT)


@contextmanager
def watched() -> Iterator[None]:
    """Within this context the sweep calls `beat` several times a second; if it stands still, the
    guard starts it again."""
    beat()
    try:
        yield
    finally:
        stop_beating()


@contextmanager
def patient(seconds: float) -> Iterator[None]:
    """Within this context a watched sweep may stand still for `seconds`."""
    beats, _HERE.beats = _HERE.beats, False
    if beats:
        _tell(f"{Word.WAIT} {seconds}")
    try:
        yield
    finally:
        if beats:
            beat()


def stop_beating() -> None:
    """What follows may take any time: the guard waits for it."""
    _HERE.beats = False
    _tell(Word.REST)


def say_stopping() -> None:
    """The user was told that the sweep is stopping: the guard need not say it."""
    _tell(Word.STOPPING)


def say_signal(number: int) -> None:
    """Report the signal that asked this process to end: it may have gone to this one alone, and
    decides the status. SIGHUP means that the terminal was closed: leave it."""
    _tell(f"{Word.SIGNAL} {number}")
    if number == signal.SIGHUP:
        leave_terminal()


def trial_ended() -> None:
    """Report that a trial came to its end: starting again has brought the sweep on."""
    _tell(Word.TRIAL_ENDED)


def start_again(reason: str) -> None:
    """End this process at once and have the guard start it again, with the reason. Without a guard
    this returns."""
    if is_guarded():
        _tell(f"{Word.REASON} {' '.join(reason.split())}")
        # Nothing is flushed: whoever holds a stream may wait for ever.
        os._exit(AGAIN)


def run_inside(run: Callable[[], int], pipe: int, *, again: bool) -> NoReturn:
    """Run a command to its end, and end this process with the status that it gives."""
    _HERE.pipe, _HERE.again = pipe, again
    sys.unraisablehook = _interrupt_again
    for number in end_signals():
        signal.signal(number, _interrupt)
    try:
        # A signal that has waited until now interrupts here.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        status = run()
        _HERE.over = True
    except BaseException as error:
        if _HERE.over:  # Python's import system raises other errors for some interrupts
            cause = "" if isinstance(error, KeyboardInterrupt) else f" ({error!r})"
            with suppress(OSError, KeyboardInterrupt):
                print(f"Interrupted{cause}. Type the same command again to go on.", file=sys.stderr)
            status = INTERRUPTED
        else:  # as the interpreter itself would end
            _HERE.over = True
            sys.excepthook(*sys.exc_info())
            status = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    _tell(Word.LEFT)
    # In the interpreter's own end a thread or a late signal could still change the status.
    os._exit(status)


def leave_terminal() -> None:
    """The terminal was closed: whatever is still printed must not fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if os.isatty(stream):
            os.dup2(nowhere, stream)
    os.close(nowhere)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    say_signal(number)
    if not _HERE.over:
        _HERE.over = True
        raise KeyboardInterrupt


def _interrupt_again(lost: sys.UnraisableHookArgs) -> None:
    """Send the interrupt again if Python dropped it: it drops every exception of a finalizer."""
    if lost.exc_type is KeyboardInterrupt:
        _HERE.dropping = True
        threading.Thread(target=_send_again).start()
        _HERE.dropping = False  # the last step: from here to the end Python runs no signal handler
    else:
        sys.__unraisablehook__(lost)


def _send_again() -> None:
    while _HERE.dropping:
        time.sleep(0.01)
    _HERE.over = False
    os.kill(os.getpid(), signal.SIGINT)


def _tell(line: str) -> None:
    if _HERE.pipe is not None:
        # A guard that is stopped does not read, and one that is gone has taken this process along.
        with suppress(OSError):
            os.write(_HERE.pipe, f"{line}\n".encode())
