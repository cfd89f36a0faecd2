"""What is amiss with a database, in words, and whether it passes."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy.exc import DBAPIError, OperationalError, ProgrammingError

from trainables.errors import PROGRAM, UserError, first_line

AFRESH = "if it was this study's, move it away and run the study again, which records again what lies as result files"
COPY = f"put back a copy of it, or name another store with --store; {AFRESH}"
CHECK = f"see what is wrong with `{PROGRAM} store check` (and this store's --storage or --store)"
CURES = {
    "SQLITE_FULL": (
        "the disk is full",
        "make room and give the same command again; what was recorded is kept",
    ),
    "SQLITE_READONLY": (
        "it is read-only",
        "make it and its folder writable, or name another store with --store",
    ),
    "SQLITE_CANTOPEN": (
        "it cannot be opened or created",
        "name a file in a folder you may write to with --store",
    ),
    "SQLITE_IOERR": (
        "the disk refuses to read or write",
        "check its space, your quota and its health, then try again",
    ),
    "SQLITE_NOTADB": (
        "the file is no SQLite database",
        f"name another store with --store; {AFRESH}",
    ),
    "SQLITE_CORRUPT": ("the file is damaged", COPY),
    "SQLITE_ERROR": ("its tables are damaged", COPY),
    "SQLITE_BUSY": (
        "another process has been writing to it for too long",
        "end that process, then try again",
    ),
    "SQLITE_LOCKED": (
        "another process has been writing to it for too long",
        "end that process, then try again",
    ),
    "53100": (
        "the server's disk is full",
        "make room and give the same command again; what was recorded is kept",
    ),
    "53": ("the server is out of resources", "free some (connections, memory) and try again"),
    "25006": ("the server is read-only", "name its primary server with --store"),
    "28": (
        "the server refuses the user or password",
        "put the right password into PGPASSWORD or ~/.pgpass",
    ),
    "3D": ("there is no such database", "make it with createdb, or name another one with --store"),
    "42501": (
        "the user may not do that",
        "grant it CREATE on the schema and all rights on the tables",
    ),
    "42": (
        "its tables are not those that this program made",
        "put back a copy of it, or name another store with --store",
    ),
    "57014": (
        "the server took more than 45 s for one statement",
        "see what keeps it busy, then try again",
    ),
    "57P": (
        "the server was shut down",
        "start it and give the same command again; what was recorded is kept",
    ),
    "08": (
        "the connection was lost",
        "check the server and give the same command again; what was recorded is kept",
    ),
}
"""What is amiss and what to do, by SQLite's error names and PostgreSQL's states; a key stands for
all codes that begin with it (SQLITE_READONLY_DIRECTORY and the like)."""
PASSING = ("SQLITE_BUSY", "SQLITE_LOCKED", "08", "53300", "57P")
"""Codes of troubles that pass, as does a server that cannot be reached."""
NEVER_WRITTEN = (ValueError, TypeError, AttributeError, OverflowError, RecursionError)
"""What reading a value may raise that is not of the kind that this program writes. Not MemoryError:
the value may be sound then."""


class StoreAwayError(UserError):
    """That a store cannot be used, `problem`, and what to do about it."""

    def __init__(self, problem: str, cure: str) -> None:
        super().__init__(f"{problem}: {cure}.")
        self.problem = problem
        """The sentence without its dot and without a cure, for who only looks on."""


@contextmanager
def user_errors(store: str, cure: str = CHECK) -> Iterator[None]:
    """Turn curable database errors into a UserError about `store`, an address without a password;
    pass on the rest.

    `cure` is what to do about those that have no cure of their own.
    """
    try:
        yield
    except DBAPIError as error:
        problem = _problem(error, cure)
        if problem is None:
            raise
        raise StoreAwayError(
            f"The results store {store} cannot be used: {problem[0]}", problem[1]
        ) from error
    except UnicodeDecodeError as error:  # what SQLite itself says of damage may repeat it
        said, cure = CURES["SQLITE_CORRUPT"]
        raise StoreAwayError(f"The results store {store} cannot be used: {said}", cure) from error


def _problem(error: DBAPIError, cure: str) -> tuple[str, str] | None:
    """What is amiss and what to do about it; None for what no user can cure."""
    code, said = code_of(error), first_line(str(error.orig)) or "no answer"
    if code is None and isinstance(error.orig, sqlite3.OperationalError):
        return f"it holds what this program never wrote ({said})", cure
    if _is_from_the_client(error):
        return (
            said,
            "check that the server runs and that host, port, user, password and database are right",
        )
    if code is None and isinstance(error, ProgrammingError):
        return None
    return next(
        (CURES[prefix] for prefix in CURES if code and code.startswith(prefix)), (said, cure)
    )


def code_of(error: DBAPIError) -> str | None:
    """SQLite's name of the error, PostgreSQL's state; None where neither database has seen it."""
    return getattr(error.orig, "sqlite_errorname", None) or getattr(error.orig, "sqlstate", None)


def _is_from_the_client(error: DBAPIError) -> bool:
    """Whether PostgreSQL's client library itself speaks: no server, a lost connection, an option it
    does not know."""
    is_server = not isinstance(error.orig, sqlite3.Error) and code_of(error) is None
    return is_server and (isinstance(error, OperationalError) or error.statement is None)


def passes(error: DBAPIError) -> bool:
    """Whether waiting may help."""
    return (code_of(error) or "").startswith(PASSING) or _is_from_the_client(error)
