"""Send a worker's events in batches."""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from orchestrator.worker.messages import EVENTS, TrialEvent

# Each report blocks the worker. Longer trials report their start and end at once.
REPORT_EVERY_S = 0.5


class Outbox:
    """Collects events and sends them together.

    A forked process exits when it tries to send.
    """

    def __init__(self, send: Callable[[str, str], None]) -> None:
        self._send, self.trial_name = send, ""
        self._events: list[TrialEvent] = []
        self._sent_s = time.monotonic()
        self._pid = os.getpid()

    def hold(self, event: TrialEvent) -> None:
        """Keep an event for the next message."""
        self._events.append(event)

    def add(self, event: TrialEvent, *, now: bool = False) -> None:
        """Keep an event; send all if `now`, or if `REPORT_EVERY_S` has passed."""
        self.hold(event)
        if now or time.monotonic() - self._sent_s >= REPORT_EVERY_S:
            self.flush()

    def flush(self) -> None:
        """Send all events; return once the driver has them."""
        if os.getpid() != self._pid:
            os._exit(0)
        if self._events:
            self._send(EVENTS.dump_json(tuple(self._events)).decode(), self.trial_name)
            self._events.clear()
        self._sent_s = time.monotonic()
