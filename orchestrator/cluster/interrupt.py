"""A signal as a wish to stop. The second one ends the process at once; if there is a guard, that is
for it to do."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from orchestrator.guard import KEPT, end_signals, is_guarded, say_signal

ENDED = f"Ended at once. {KEPT}\n".encode()


@dataclass
class Interrupt:
    """Whether the end was asked for."""

    requested: bool = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Within this context signals only set `requested`; then the handlers before are back. Outside
    the main thread signals are left alone."""
    interrupt = Interrupt()

    def handle(number: int, _frame: FrameType | None) -> None:
        say_signal(number)
        if interrupt.requested and not is_guarded():
            os.write(2, ENDED)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        interrupt.requested = True

    numbers = end_signals() if threading.current_thread() is threading.main_thread() else []
    before = [signal.signal(number, handle) for number in numbers]
    try:
        yield interrupt
    finally:
        for number, handler in zip(numbers, before, strict=True):
            # None stands for a handler that is no Python function, which cannot be put back.
            signal.signal(number, handler or signal.SIG_DFL)
