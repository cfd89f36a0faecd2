"""Connections, transactions and their failures, for SQLite and PostgreSQL."""

from __future__ import annotations

import select
import sqlite3
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, RootTransaction, Table, create_engine, event, text
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, InvalidatePoolError

from orchestrator.store.address import printable
from orchestrator.store.sqlite_files import SqliteFile
from orchestrator.store.troubles import NEVER_WRITTEN, damaged, is_temporary, user_errors
from trainables.errors import first_line, terminal_text

BUSY_TIMEOUT_S = 30.0
AWAY_S = 180.0
AGAIN_S = 1.0
SERVER_SETTINGS = {"statement_timeout": "45s", "idle_in_transaction_session_timeout": "60s"}
# Settings of libpq that detect a lost server within 20 s. The store's address can override them.
CONNECT_ARGUMENTS = {
    "connect_timeout": 10,
    "keepalives_idle": 5,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
ANSWER_S = 10.0
# SQLite allows 32,766 parameters in a statement, PostgreSQL 65,535.
IDS_A_STATEMENT = 5_000


class Database:
    """A SQLite or PostgreSQL database.

    Raises UserError for problems that a user can fix, such as a full disk, and if a SQLite file was
    deleted or replaced during use. A new transaction waits while a SQLite file is locked. It also
    waits for an unreachable server, if this object has reached the server before.
    """

    def __init__(
        self, url: URL, *, away_s: float = AWAY_S, on_wait: Callable[[], None] = lambda: None
    ) -> None:
        """Wait up to `away_s` seconds for an unreachable database, calling `on_wait` meanwhile."""
        self.url = url
        self._away_s, self._on_wait = away_s, on_wait
        self.address = printable(url)
        self._file: SqliteFile | None = None
        self._has_answered = self._is_waiting = False
        self._shared_connection: Connection | None = None
        if url.drivername == "sqlite":
            self._file = SqliteFile(Path(url.database or ""))
            self._reader: Engine = create_engine(
                self._file.url, connect_args={"timeout": BUSY_TIMEOUT_S}
            )
            event.listen(self._reader, "connect", self._set_up_sqlite)
            event.listen(self._reader, "begin", _begin_sqlite)
            self._writer: Engine = self._reader.execution_options(sqlite_begin="IMMEDIATE")
        else:
            arguments = {
                name: value for name, value in CONNECT_ARGUMENTS.items() if name not in url.query
            }
            self._writer = create_engine(url, connect_args=arguments)
            event.listen(self._writer, "connect", _set_up_postgresql)
            event.listen(self._writer, "checkout", _await_answer)
            self._reader = self._writer.execution_options(isolation_level="REPEATABLE READ")

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """Yield a transaction whose reads all see the same state of the database.

        Raises UserError if a stored value cannot be decoded.
        """
        with self._transaction(self._reader) as connection, self.reading():
            try:
                yield connection
            finally:
                if self._file is not None and self._file.is_unchanging:
                    self._file.check()  # before reporting an error that a writer caused

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Raise UserError if a stored value cannot be decoded."""
        try:
            yield
        except KeyError:  # the caller asked for something that the store does not have
            raise
        except NEVER_WRITTEN as error:
            raise damaged(self.address, first_line(error)) from error

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """Yield a write transaction. An exception inside rolls it back."""
        with self._transaction(self._writer) as connection:
            yield connection
            self._check_file()

    def close(self) -> None:
        """Close all connections."""
        self._writer.dispose()

    @contextmanager
    def one_transaction(self) -> Iterator[None]:
        """Run all store calls of this context in one transaction.

        No other thread may use the store meanwhile.
        """
        with self.write() as connection:
            if connection.dialect.name == "postgresql":  # the caller may pause
                connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))
            self._shared_connection = connection
            try:
                yield
            finally:
                self._shared_connection = None

    def check_pages(self) -> None:
        """Raise UserError if SQLite finds damage in its file."""
        if self._file is not None:
            with self.read() as connection:
                finding = connection.exec_driver_sql("PRAGMA integrity_check(1)").scalar_one()
            if finding != "ok":
                raise damaged(self.address, first_line(str(finding)))

    @contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        if self._shared_connection is not None:
            yield self._shared_connection
            return
        with user_errors(self.address):
            connection, transaction = self._begin(engine)
            with connection, transaction:
                yield connection

    def _begin(self, engine: Engine) -> tuple[Connection, RootTransaction]:
        deadline_s = time.monotonic() + self._away_s
        while True:
            try:
                self._check_file()  # a new connection would create a deleted file again
                connection = engine.connect()
                try:
                    transaction = connection.begin()
                    self._check_file()
                except BaseException:
                    connection.close()
                    raise
                self._has_answered, self._is_waiting = True, False
                return connection, transaction
            except DBAPIError as error:
                may_pass = is_temporary(error) and (self._has_answered or self._file)
                if not may_pass or time.monotonic() >= deadline_s:
                    raise
                if not self._is_waiting:
                    self._is_waiting = True
                    sentence = (
                        f"The results store {self.address} cannot be used now "
                        f"({first_line(str(error.orig))}): waiting up to {self._away_s / 60:g} "
                        "minutes."
                    )
                    print(terminal_text(sentence), file=sys.stderr)
            self._on_wait()
            time.sleep(AGAIN_S)

    def _check_file(self) -> None:
        if self._file is not None:
            self._file.check()

    def _set_up_sqlite(self, connection: sqlite3.Connection, _record: object) -> None:
        connection.isolation_level = None  # `_begin_sqlite` begins transactions, not the driver
        if self._file is not None and not self._file.is_unchanging:
            connection.execute("PRAGMA foreign_keys = ON")
            connection.execute("PRAGMA journal_mode = WAL")
            # In WAL mode, NORMAL may lose the last transactions at a power cut. FULL syncs the log
            # at each commit: a few milliseconds, compared with the training that a lost result
            # would cost.
            connection.execute("PRAGMA synchronous = FULL")


def _set_up_postgresql(connection: Any, _record: object) -> None:
    for name, value in SERVER_SETTINGS.items():
        connection.execute(f"SET {name} = '{value}'")
    connection.commit()


def _await_answer(connection: Any, _record: object, _fairy: object) -> None:
    # A frozen server's kernel still answers TCP, so only a reply to a query shows that the server
    # runs.
    import psycopg

    server = connection.pgconn
    try:
        server.send_query(b"")
        readable = select.poll()
        readable.register(server.socket, select.POLLIN)
        result: object = server
        while result is not None:
            while server.is_busy():
                if not readable.poll(ANSWER_S * 1000):
                    raise psycopg.OperationalError("the server does not answer")
                server.consume_input()
            result = server.get_result()
    except psycopg.Error as error:
        raise InvalidatePoolError(str(error)) from error


def _begin_sqlite(connection: Connection) -> None:
    # A transaction that reads first and writes later fails without waiting if another one wrote in
    # between. IMMEDIATE takes the write lock at the start and waits for it.
    connection.exec_driver_sql(
        "BEGIN " + connection.get_execution_options().get("sqlite_begin", "DEFERRED")
    )


def now(connection: Connection) -> datetime:
    """Return the current UTC time of the PostgreSQL server, or of this host for SQLite."""
    if connection.dialect.name == "postgresql":
        moment = connection.execute(text("SELECT clock_timestamp()")).scalar_one()
        assert isinstance(moment, datetime)
        return moment.astimezone(UTC)
    return datetime.now(UTC)


def storable(words: str) -> str:
    """Return the text with "?" for characters that databases refuse: surrogates and NUL."""
    return words.encode("utf-8", "replace").decode().replace("\0", "?")


def insert_new(connection: Connection, table: Table, rows: Collection[dict[str, Any]]) -> None:
    """Insert the rows that violate no unique constraint."""
    if rows:
        insert: Callable[[Table], Any] = (
            sqlite.insert if connection.dialect.name == "sqlite" else postgresql.insert
        )
        connection.execute(insert(table).on_conflict_do_nothing(), list(rows))


def execute_for(
    connection: Connection, statement: Any, column: Any, ids: Iterable[str]
) -> list[Any]:
    """Execute a statement for the rows whose `column` is one of `ids`; return its results.

    The ids keep their order and are divided, because databases limit the ids in a statement.
    """
    all_ids = list(ids)
    return [
        connection.execute(statement.where(column.in_(all_ids[start : start + IDS_A_STATEMENT])))
        for start in range(0, len(all_ids), IDS_A_STATEMENT)
    ]
