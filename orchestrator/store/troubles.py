"""Explain database errors: the problem, its fix, and whether waiting helps."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from trainables.errors import PROGRAM, UserError, first_line

REBUILD = (
    f"rebuild it from the trial folders with `{PROGRAM} store rebuild` (and its --storage and "
    "--store)"
)
ROOM = "free some space and run the same command again; recorded results are kept"
SERVER = "check that the server runs and that host, port, user, password and database are right"
BUSY = ("another process has been writing to it for too long", "end that process, then try again")
CURES = {
    "SQLITE_FULL": ("the disk is full", ROOM),
    "SQLITE_READONLY": (
        "it is read-only",
        f"make it and its folder writable, name another one with --store, or {REBUILD}",
    ),
    "SQLITE_CANTOPEN": (
        "it cannot be opened or created",
        f"name a file in a writable folder with --store, or {REBUILD}",
    ),
    "SQLITE_IOERR": (
        "the disk cannot read or write it",
        f"check its space, your quota and its health, then try again, or {REBUILD}",
    ),
    "SQLITE_NOTADB": (
        "the file is not an SQLite database",
        f"name another one with --store, or {REBUILD}",
    ),
    "SQLITE_BUSY": BUSY,
    "SQLITE_LOCKED": BUSY,
    "53100": ("the server's disk is full", ROOM),
    "53": ("the server is out of resources", "free connections or memory, then try again"),
    "25006": ("the server is read-only", "name its primary server with --store"),
    "28": (
        "the server refuses the user or password",
        "put the right password into PGPASSWORD or ~/.pgpass",
    ),
    "3D": ("no such database", "make it with createdb, or name another one with --store"),
    "42501": (
        "the user has too few rights",
        "grant that user CREATE on the schema and all rights on the tables",
    ),
    "40": ("another process changed the same rows", "run the same command again"),
    "57014": (
        "the server took more than 45 s for one statement",
        "find out what keeps it busy, then try again",
    ),
    "57P": (
        "the server was shut down",
        "start it and run the same command again; recorded results are kept",
    ),
    "08": (
        "the connection was lost",
        "check the server and run the same command again; recorded results are kept",
    ),
}
"""Problem and fix of database errors.

The keys are the first characters of SQLite's error names or PostgreSQL's error codes. An error
without a key means that the store is damaged.
"""
TEMPORARY = ("SQLITE_BUSY", "SQLITE_LOCKED", "08", "53300", "57P")
"""Codes of errors that may pass, by their first characters."""
NEVER_WRITTEN = (ValueError, TypeError, AttributeError, OverflowError, RecursionError, LookupError)
"""Errors that occur if a stored value is damaged."""


class StoreAwayError(UserError):
    """The store cannot be used. The message states the problem and its fix."""

    def __init__(self, problem: str, cure: str) -> None:
        super().__init__(f"{problem}: {cure}.")
        self.problem = problem


def damaged(store: str, problem: str) -> StoreAwayError:
    """Return the error for a damaged store. `store` is its address without the password."""
    return StoreAwayError(f"The results store {store} is damaged ({problem})", REBUILD)


@contextmanager
def user_errors(store: str) -> Iterator[None]:
    """Raise database errors as UserError. `store` is the store's address without a password.

    Errors that no user can fix stay unchanged.
    """
    try:
        yield
    except DBAPIError as error:
        code, message = code_of(error), first_line(str(error.orig)) or "no answer"
        if _is_from_the_client(error):
            explanation: tuple[str, str] | None = (message, SERVER)
        elif code is None and isinstance(error, ProgrammingError):
            raise
        else:
            explanation = next((CURES[key] for key in CURES if (code or "").startswith(key)), None)
        if explanation is None:
            raise damaged(store, message) from error
        problem, cure = explanation
        raise StoreAwayError(
            f"The results store {store} cannot be used: {problem}", cure
        ) from error
    except UnicodeDecodeError as error:  # SQLite's message may repeat damaged text
        raise damaged(store, "its table definitions are not text") from error


def code_of(error: DBAPIError) -> str | None:
    """Return SQLite's error name, PostgreSQL's error code, or None."""
    return getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None)


def _is_from_the_client(error: DBAPIError) -> bool:
    is_server = not isinstance(error.orig, sqlite3.Error) and code_of(error) is None
    return is_server and (isinstance(error, OperationalError) or error.statement is None)


def is_temporary(error: DBAPIError) -> bool:
    """Return whether the error may pass without the user's help."""
    return (code_of(error) or "").startswith(TEMPORARY) or _is_from_the_client(error)
