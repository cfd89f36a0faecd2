"""Database trouble that the person at the keyboard can cure, told in one sentence."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError

from trainables.errors import UserError, first_line

# By SQLite's own error names; a name stands for all that begin with it (SQLITE_READONLY_DIRECTORY and the like).
_SQLITE = {
    "SQLITE_FULL": "the disk is full: make room and give the same command again; what was recorded is kept",
    "SQLITE_READONLY": "it is read-only: make it and its folder writable, or name another store with --store",
    "SQLITE_CANTOPEN": "it cannot be opened or created: name a file in a folder you may write to with --store",
    "SQLITE_IOERR": "the disk refuses to read or write: check its space, your quota and its health, then try again",
    "SQLITE_NOTADB": "the file is no SQLite database: name another store with --store",
    "SQLITE_CORRUPT": "the file is damaged: put back a copy of it, or name another store with --store",
    "SQLITE_BUSY": "another process has been writing to it for too long: end that process, then try again",
    "SQLITE_LOCKED": "another process has been writing to it for too long: end that process, then try again",
}

# By SQLSTATE, or its two-character class.
_POSTGRESQL = {
    "53100": "the server's disk is full: make room and give the same command again; what was recorded is kept",
    "53": "the server is out of resources: free some (connections, memory) and try again",
    "25006": "the server is read-only: name its primary server with --store",
    "28": "the server refuses the user or password: put the right ones into --store",
    "3D": "there is no such database: make it with createdb, or name another one with --store",
    "42501": "the user may not do that: grant it CREATE on the schema and all rights on the tables",
    "57P": "the server was shut down: start it and give the same command again; what was recorded is kept",
    "08": "the connection was lost: check the server and give the same command again; what was recorded is kept",
}


@contextmanager
def user_errors(store: str) -> Iterator[None]:
    """Turn curable database errors into a UserError about `store`, an address without a password; pass on the rest."""
    try:
        yield
    except DBAPIError as error:
        problem = _problem(error.orig)
        if problem is None:
            raise
        raise UserError(f"The results store {store} cannot be used: {problem}.") from error


def _problem(error: BaseException | None) -> str | None:
    if isinstance(error, sqlite3.Error):
        name = getattr(error, "sqlite_errorname", "")
        return next((text for prefix, text in _SQLITE.items() if name.startswith(prefix)), None)
    import psycopg  # only here: a SQLite store works without the PostgreSQL client library

    if not isinstance(error, psycopg.Error):
        return None
    if error.sqlstate is not None:
        return next((text for prefix, text in _POSTGRESQL.items() if error.sqlstate.startswith(prefix)), None)
    if not isinstance(error, psycopg.OperationalError):
        return None
    # Without a state the client library itself speaks: no server, a refused connection, a lost one.
    problem = first_line(str(error)) or "no answer"
    return f"{problem}: check that the server runs and that host, port, user, password and database are right"
