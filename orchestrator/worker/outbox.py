"""What a worker tells the driver, several events in one message."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from orchestrator.worker.messages import EVENTS, TrialEvent

REPORT_EVERY_S = 0.5
"""A report makes the worker wait for the driver, so it reports no more often, but for the start and
end of trials that last longer than this."""


class Outbox:
    """Collects events and sends them together. `running` is the name of the trial whose events they
    are.

    What an output layer has forked from this process, and comes to speak here, ends.
    """

    def __init__(self, send: Callable[[str], None], tell: Callable[[str], None] | None) -> None:
        self._send, self._tell = send, tell
        self.running = ""
        self._events: list[TrialEvent] = []
        self._sent_s = time.monotonic()
        self._pid = os.getpid()

    def hold(self, event: TrialEvent) -> None:
        """Keep an event for the next message."""
        self._events.append(event)

    def add(self, event: TrialEvent, *, now: bool = False) -> None:
        """Keep an event, and send all of them if the last message is long enough ago, or `now`."""
        self.hold(event)
        if now or time.monotonic() - self._sent_s >= REPORT_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Send what is there; return once the driver has taken it."""
        if os.getpid() != self._pid:
            os._exit(0)
        if self._events:
            self._send(EVENTS.dump_json(tuple(self._events)).decode())
            self._events.clear()
            if self._tell is not None:
                self._tell(self.running)
        self._sent_s = time.monotonic()
