"""A signal as a wish to stop. The second one ends the process at once; where there is a guard, that
is for it to do."""

from __future__ import annotations

import os
import signal
import threading
from types import FrameType, TracebackType
from typing import Any, Self

from orchestrator.guard import KEPT, end_signals, is_guarded, leave_terminal, say_signal

ENDED = f"Ended at once. {KEPT}\n".encode()


class Interrupt:
    """Context in which signals only set `requested`; then the handlers that it found are back.

    Outside the main thread it leaves signals alone.
    """

    def __init__(self) -> None:
        self.requested = False
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._before = {number: signal.getsignal(number) for number in end_signals()}
        for number in self._before:
            signal.signal(number, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            # None stands for a handler that is no Python function, which cannot be put back.
            signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        say_signal(number)
        if number == signal.SIGHUP:
            leave_terminal()
        if self.requested and not is_guarded():
            os.write(2, ENDED)
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        self.requested = True
