"""The file of a SQLite store."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import URL

from orchestrator.store.troubles import StoreAwayError
from trainables.errors import UserError


class SqliteFile:
    """A SQLite file, checked because a connection would keep using a deleted file."""

    def __init__(self, path: Path) -> None:
        self._path, self._log = path, Path(f"{path}-wal")
        self._first_identity: tuple[int, ...] | None = None
        self.is_unchanging = (
            path.is_file() and not os.access(path.parent, os.W_OK) and not self._log.exists()
        )
        """True if the folder is read-only and has no log.

        SQLite then opens the file as immutable, because it cannot create the file that readers of a
        log share.
        """

    @property
    def url(self) -> URL:
        """URL of the file; read-only if unchanging."""
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
