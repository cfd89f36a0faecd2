"""Stop requests by signal: the first sets a flag, the second ends the process."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

from orchestrator.guard import RESUME_HINT, end_signals, is_guarded, report_signal

ENDED_TEXT = f"Ended at once. {RESUME_HINT}\n".encode()


@dataclass
class Interrupt:
    """Flag that is set when a signal asks the command to stop."""

    requested: bool = False


@contextmanager
def interruptible() -> Iterator[Interrupt]:
    """Yield an `Interrupt` that the first signal sets. This works in the main thread only."""
    interrupt = Interrupt()

    def handle(number: int, _frame: FrameType | None) -> None:
        report_signal(number)
        if interrupt.requested and not is_guarded():
            os.write(2, ENDED_TEXT)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        interrupt.requested = True

    numbers = end_signals() if threading.current_thread() is threading.main_thread() else []
    handlers = [signal.signal(number, handle) for number in numbers]
    try:
        yield interrupt
    finally:
        for number, handler in zip(numbers, handlers, strict=True):
            # None means a handler that is not a Python function, which cannot be restored.
            signal.signal(number, handler or signal.SIG_DFL)
