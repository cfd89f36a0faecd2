"""Connections, transactions and their failures: all that differs between SQLite and PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError

from orchestrator.store.address import printable
from trainables.errors import UserError, first_line

BUSY_TIMEOUT_S = 30.0
CONNECT_TIMEOUT_S = 10
IDS_A_STATEMENT = 5_000
"""Ids bound to one statement; SQLite allows 32,766 parameters, PostgreSQL 65,535."""
CURES = {
    "SQLITE_FULL": "the disk is full: make room and give the same command again; what was recorded is kept",
    "SQLITE_READONLY": "it is read-only: make it and its folder writable, or name another store with --store",
    "SQLITE_CANTOPEN": "it cannot be opened or created: name a file in a folder you may write to with --store",
    "SQLITE_IOERR": "the disk refuses to read or write: check its space, your quota and its health, then try again",
    "SQLITE_NOTADB": "the file is no SQLite database: name another store with --store",
    "SQLITE_CORRUPT": "the file is damaged: put back a copy of it, or name another store with --store",
    "SQLITE_BUSY": "another process has been writing to it for too long: end that process, then try again",
    "SQLITE_LOCKED": "another process has been writing to it for too long: end that process, then try again",
    "53100": "the server's disk is full: make room and give the same command again; what was recorded is kept",
    "53": "the server is out of resources: free some (connections, memory) and try again",
    "25006": "the server is read-only: name its primary server with --store",
    "28": "the server refuses the user or password: put the right ones into --store",
    "3D": "there is no such database: make it with createdb, or name another one with --store",
    "42501": "the user may not do that: grant it CREATE on the schema and all rights on the tables",
    "57P": "the server was shut down: start it and give the same command again; what was recorded is kept",
    "08": "the connection was lost: check the server and give the same command again; what was recorded is kept",
}
"""What is amiss and what to do, by SQLite's error names and PostgreSQL's states; a key stands for all codes that begin
with it (SQLITE_READONLY_DIRECTORY and the like)."""


class Database:
    """A database with read and write transactions; trouble that a user can cure comes out as UserError."""

    def __init__(self, url: URL) -> None:
        self.url = url
        self.address = printable(url)
        """Safe to print: without the password."""
        if url.drivername == "sqlite":
            self._reader: Engine = create_engine(url, connect_args={"timeout": BUSY_TIMEOUT_S})
            event.listen(self._reader, "connect", _set_up_sqlite)
            event.listen(self._reader, "begin", _begin_sqlite)
            self._writer: Engine = self._reader.execution_options(sqlite_begin="IMMEDIATE")
        else:
            self._writer = create_engine(url, pool_pre_ping=True, connect_args={"connect_timeout": CONNECT_TIMEOUT_S})
            self._reader = self._writer.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """A transaction that sees one moment of the database."""
        with _user_errors(self.address), self._reader.begin() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """A transaction that may write; an exception inside undoes all of it."""
        with _user_errors(self.address), self._writer.begin() as connection:
            yield connection

    def close(self) -> None:
        """Close all connections."""
        self._writer.dispose()


class Transactions:
    """What every part of the store works through."""

    def __init__(self, database: Database) -> None:
        self._database = database


@contextmanager
def _user_errors(store: str) -> Iterator[None]:
    """Turn curable database errors into a UserError about `store`, an address without a password; pass on the rest."""
    try:
        yield
    except DBAPIError as error:
        problem = _problem(error)
        if problem is None:
            raise
        raise UserError(f"The results store {store} cannot be used: {problem}.") from error


def _problem(error: DBAPIError) -> str | None:
    code = getattr(error.orig, "sqlite_errorname", getattr(error.orig, "sqlstate", ""))
    if code is None and (isinstance(error, OperationalError) or error.statement is None):
        # PostgreSQL's client library itself speaks: no server, a lost connection, an option that it does not know.
        problem = first_line(str(error.orig)) or "no answer"
        return f"{problem}: check that the server runs and that host, port, user, password and database are right"
    return next((cure for prefix, cure in CURES.items() if code and code.startswith(prefix)), None)


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    connection.isolation_level = None  # the driver begins no transactions by itself, `_begin_sqlite` does
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA journal_mode = WAL")
    # In WAL mode NORMAL may forget the last transactions at a power cut; FULL syncs the log at each commit, and a
    # few milliseconds are nothing beside the training that a lost result would cost.
    cursor.execute("PRAGMA synchronous = FULL")
    cursor.close()


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later fails at once, without waiting, when another one wrote between;
    # IMMEDIATE takes the write lock at the start and waits for it.
    connection.exec_driver_sql("BEGIN " + connection.get_execution_options().get("sqlite_begin", "DEFERRED"))


def now(connection: Connection) -> datetime:
    """The time by the one clock that all users of this database share: the server's, or this machine's."""
    if connection.dialect.name == "postgresql":
        moment = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        assert isinstance(moment, datetime)
        return moment.astimezone(UTC)
    return datetime.now(UTC)


_INSERTS: dict[str, Callable[[Table], Any]] = {"sqlite": sqlite.insert, "postgresql": postgresql.insert}


def insert_new(connection: Connection, table: Table, rows: Collection[dict[str, Any]]) -> None:
    """Insert those rows whose key, or other unique columns, the table does not have yet."""
    if rows:
        connection.execute(_INSERTS[connection.dialect.name](table).on_conflict_do_nothing(), list(rows))


def upsert(connection: Connection, table: Table, rows: Collection[dict[str, Any]]) -> None:
    """Insert rows; those whose primary key the table has already replace what is there."""
    if not rows:
        return
    insert = _INSERTS[connection.dialect.name](table)
    keys = list(table.primary_key.columns)
    values = {column.name: insert.excluded[column.name] for column in table.columns if column not in keys}
    connection.execute(insert.on_conflict_do_update(index_elements=keys, set_=values), list(rows))


def chunks(ids: Collection[str]) -> Iterator[list[str]]:
    """The ids in order, as many at a time as a statement may bind."""
    rest = iter(ids)
    while chunk := list(islice(rest, IDS_A_STATEMENT)):
        yield chunk
