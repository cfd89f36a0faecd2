"""Inside the guarded process: what it tells its guard, and how a signal reaches it.

Outside of a guard (in a notebook, in tests) nothing is told, and signals do what they did before.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What asks a command to end."""
INTERRUPTED = 130
AGAIN = 75
"""The exit status that asks the guard for a fresh process: what died cannot be fixed in this
one."""
BEAT, NO_BEAT, PAUSE, STOPPING, ENDED, LEFT = (
    "beat",
    "no beat",
    "pause",
    "stopping",
    "ended",
    "left",
)
REASON, SIGNAL = "reason ", "signal "
"""The lines of the pipe to the guard."""

_pipe: int | None = None
_beating = _again = _interrupted = False
"""The last: a signal has ended the command, or it has ended; another one changes nothing."""


def end_signals() -> list[signal.Signals]:
    """The signals to answer: all of them, but no SIGHUP under `nohup`."""
    return [
        number
        for number in SIGNALS
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN
    ]


def is_guarded() -> bool:
    """Whether this process has a guard, which alone decides what a second signal does."""
    return _pipe is not None


def beat() -> None:
    """Tell the guard that the sweep moves; see `watched`."""
    global _beating
    _beating = True
    _tell(BEAT)


def beat_on() -> None:
    """Tell so while somebody else is waited for, if the guard expects to hear at all."""
    if _beating:
        _tell(BEAT)


@contextmanager
def unwatched() -> Iterator[None]:
    """What is done meanwhile may take long, and has bounds of its own. It is a part of the sweep:
    should the process crash in it, the sweep is started again."""
    global _beating
    was_beating = _beating
    if was_beating:
        _beating = False
        _tell(PAUSE)
    try:
        yield
    finally:
        if was_beating:
            beat()


@contextmanager
def watched() -> Iterator[None]:
    """What is done meanwhile calls `beat` several times a second; else it stands still, and is
    started again."""
    beat()
    try:
        yield
    finally:
        stop_beating()


def was_started_again() -> bool:
    """Whether a process of this same command went before, and died."""
    return _again


def stop_beating() -> None:
    """What follows may take any time: the guard waits for it."""
    global _beating
    _beating = False
    _tell(NO_BEAT)


def say_stopping() -> None:
    """The reader has been told that the sweep is stopping: the guard need not say it."""
    _tell(STOPPING)


def say_signal(number: int) -> None:
    """Report the signal that asked this process to end: it may have gone to this one alone, and
    decides the status."""
    _tell(f"{SIGNAL}{number}")


def trial_ended() -> None:
    """A trial came to its end, so that starting again has brought the sweep on."""
    _tell(ENDED)


def start_again(reason: str) -> None:
    """End this process at once and have the guard start it again, saying why. Without a guard it
    returns."""
    if is_guarded():
        _tell(REASON + " ".join(reason.split()))
        # Nothing is flushed: whoever holds a stream may wait for ever.
        os._exit(AGAIN)


def run_inside(run: Callable[[], int], pipe: int, *, again: bool) -> NoReturn:
    """Run a command to its end, and end this process with the status that it gives."""
    global _pipe, _again, _interrupted
    _pipe, _again = pipe, again
    for number in end_signals():
        signal.signal(number, _interrupt)
    sys.unraisablehook = _raise_where_it_counts
    try:
        # A signal that has waited until now interrupts here.
        signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())
        status = run()
        _interrupted = True
    except KeyboardInterrupt:
        with suppress(OSError, KeyboardInterrupt):
            print("Interrupted. Type the same command again to go on.", file=sys.stderr)
        status = INTERRUPTED
    except BaseException:  # as the interpreter itself would end
        _interrupted = True
        sys.excepthook(*sys.exc_info())
        status = 1
    _leave(status)


def leave_terminal() -> None:
    """The terminal was closed: whatever is still said must not fail."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        if os.isatty(stream):
            os.dup2(nowhere, stream)
    os.close(nowhere)


def _interrupt(number: int, _frame: FrameType | None) -> None:
    global _interrupted
    say_signal(number)
    if number == signal.SIGHUP:
        leave_terminal()
    if not _interrupted:
        _interrupted = True
        raise KeyboardInterrupt


def _raise_where_it_counts(unraisable: Any) -> None:
    """A signal that came in a destructor would be printed there and forgotten: it comes once
    more."""
    global _interrupted
    if unraisable.exc_type is KeyboardInterrupt:
        _interrupted = False
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    else:
        sys.__unraisablehook__(unraisable)


def _tell(line: str) -> None:
    if _pipe is not None:
        # A guard that is stopped does not read, and one that is gone has taken this process with
        # it.
        with suppress(OSError):
            os.write(_pipe, f"{line}\n".encode())


def _leave(status: int) -> NoReturn:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    _tell(LEFT)
    # Not by the interpreter's own end, in which a thread or a late signal could still change the
    # status.
    os._exit(status)
