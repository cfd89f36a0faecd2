"""A SQLite database and its log as files: are they those that were opened first?"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy import Engine, event

from trainables.errors import UserError


class SqliteFiles:
    """The files behind an engine. Connections hold on to deleted ones, and take into them whatever they are given."""

    def __init__(self, database: Path, engine: Engine) -> None:
        self._database, self._log = database, Path(f"{database}-wal")
        self._first: dict[Path, tuple[int, int]] = {}
        self._connections: set[int] = set()
        event.listen(engine, "connect", self._note_connection)
        event.listen(engine, "close", self._forget_connection)

    def check(self) -> None:
        """Raise UserError where one of them was deleted or replaced."""
        for path in (self._database, self._log) if self._connections else (self._database,):
            try:
                stat = path.stat()
                now = (stat.st_dev, stat.st_ino)
            except OSError:
                now = None
            first = self._first.get(path) if now is None else self._first.setdefault(path, now)
            if first != now:
                raise UserError(
                    f"{path} was deleted or replaced while this command used it as its results store: put it back, or "
                    "leave it as it is, and type the same command again; what lies as result files is recorded anew."
                )

    def _note_connection(self, connection: sqlite3.Connection, _record: object) -> None:
        self._connections.add(id(connection))

    def _forget_connection(self, connection: sqlite3.Connection, _record: object) -> None:
        """SQLite removes the log with the last connection, which Ctrl-C during a statement closes."""
        self._connections.discard(id(connection))
        if not self._connections:
            self._first.pop(self._log, None)
