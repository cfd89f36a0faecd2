"""Who works in a trial's folder: of two workers that both believe to, only the later one may write there.

The folder's lock keeps them apart where the file system has locks. Across machines it may not: a machine that is cut
off from the cluster still trains, its lock may have been given up for it, and its trial runs on elsewhere.
"""

from __future__ import annotations

import secrets
from pathlib import Path

from trainables.trial_folder.files import write_file

NAME = "worker"


class SupersededError(Exception):
    """Another worker has taken the trial over; what this one has computed since is of no use."""


class Fence:
    """The right to write into a trial's folder, from its making until another one is made for the same folder."""

    def __init__(self, directory: Path) -> None:
        self._path, self._token = directory / NAME, secrets.token_hex(16).encode()
        write_file(self._path, self._token)

    def check(self) -> None:
        """Raise SupersededError where another worker has the right by now. Asked before each write."""
        try:
            found = self._path.read_bytes()
        except FileNotFoundError:
            found = b""
        if found != self._token:
            raise SupersededError(f"another worker has taken over the trial in {self._path.parent}")

    def leave(self) -> None:
        """Give the right up, once everything is written; nobody has it then."""
        try:
            self.check()
        except SupersededError:
            return
        self._path.unlink(missing_ok=True)
