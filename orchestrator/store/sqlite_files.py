"""Detect that the file of a SQLite store was deleted, replaced or changed."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import URL

from orchestrator.store.troubles import StoreAwayError
from trainables.errors import UserError


class SqliteFile:
    """The file of a SQLite store. An open connection does not notice that the file was deleted."""

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, Path(f"{path}-wal")
        self._first_identity: tuple[int, ...] | None = None
        # SQLite must open the file as immutable if it cannot create the file through which
        # processes share a log.
        self.is_unchanging = (
            path.is_file() and not os.access(path.parent, os.W_OK) and not self._log.exists()
        )

    @property
    def url(self) -> URL:
        """URL with which SQLAlchemy opens the file."""
        if not self.is_unchanging:
            return URL.create("sqlite", database=str(self._path))
        query = {"mode": "ro", "immutable": "1", "uri": "true"}
        return URL.create("sqlite", database=f"file:{quote(str(self._path))}", query=query)

    def check(self) -> None:
        """Raise UserError if the file was deleted or replaced, or an immutable file changed."""
        try:
            stat = self._path.stat()
            identity = (stat.st_dev, stat.st_ino, stat.st_mtime_ns * self.is_unchanging)
        except OSError:
            identity = None
        self._first_identity = self._first_identity or identity
        if self.is_unchanging and (identity != self._first_identity or self._log.exists()):
            raise UserError(
                f"Another process writes to the results store {self._path}: run the same command "
                "again."
            )
        if identity != self._first_identity:
            raise StoreAwayError(
                f"The results store {self._path} was deleted or replaced during this command",
                "put the file back if you can, and run the same command again to record results",
            )
