"""A SQLite database and its log as files: may they be written to, and are they those that were
opened first?"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from urllib.parse import quote

from sqlalchemy import Engine, event
from sqlalchemy.engine import URL

from orchestrator.store.troubles import StoreAwayError
from trainables.errors import UserError


def unchanging(database: Path) -> URL | None:
    """Return the address by which SQLite reads a database that nobody writes and whose folder takes
    no file, such as on a read-only disk; None for any other. With a log, a reader needs the file
    next to it that all readers share."""
    if (
        not database.is_file()
        or os.access(database.parent, os.W_OK)
        or Path(f"{database}-wal").exists()
    ):
        return None
    query = {"mode": "ro", "immutable": "1", "uri": "true"}
    return URL.create("sqlite", database=f"file:{quote(str(database))}", query=query)


class SqliteFiles:
    """The files behind an engine. Connections hold on to deleted ones, and take into them whatever
    they are given; one to an `unchanging` database sees nothing of what somebody else writes."""

    def __init__(self, database: Path, engine: Engine, *, is_unchanging: bool) -> None:
        self._database, self._log = database, Path(f"{database}-wal")
        self.is_unchanging = is_unchanging
        self._first: dict[Path, tuple[int, ...]] = {}
        self._connections: set[int] = set()
        event.listen(engine, "connect", self._note_connection)
        event.listen(engine, "close", self._forget_connection)

    def check(self) -> None:
        """Raise UserError if a file was deleted or replaced, or is written though it was not to
        change."""
        if self.is_unchanging and self._log.exists():
            raise self._changed(self._log)
        for path in (self._database, self._log) if self._connections else (self._database,):
            try:
                stat = path.stat()
                now = (stat.st_dev, stat.st_ino, stat.st_mtime_ns * self.is_unchanging)
            except OSError:
                now = None
            first = self._first.get(path) if now is None else self._first.setdefault(path, now)
            if first != now:
                raise self._changed(path)

    def _changed(self, path: Path) -> UserError:
        if self.is_unchanging:
            return UserError(
                f"Somebody writes into the results store {self._database}: type the same command "
                f"again."
            )
        return StoreAwayError(
            f"{path} was deleted or replaced while this command used it as its results store",
            "put it back, or leave it as it is, and type the same command again, which records "
            "result files again",
        )

    def _note_connection(self, connection: sqlite3.Connection, _record: object) -> None:
        self._connections.add(id(connection))

    def _forget_connection(self, connection: sqlite3.Connection, _record: object) -> None:
        """SQLite removes the log with the last connection, which Ctrl-C during a statement
        closes."""
        self._connections.discard(id(connection))
        if not self._connections:
            self._first.pop(self._log, None)
