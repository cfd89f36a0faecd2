"""A listener for tests of what a sweep says."""

from __future__ import annotations

from orchestrator.watch.listener import Listener


class Notes(Listener):
    """A listener that remembers what is said."""

    def __init__(self) -> None:
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)
