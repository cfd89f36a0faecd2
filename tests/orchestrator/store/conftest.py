"""A fresh store for each test, in SQLite and in a PostgreSQL server that the tests start themselves."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from orchestrator.store.interface import Store
from orchestrator.store.opening import open_store
from orchestrator.store.schema import metadata

PASSWORD = "not a secret/@"
"""With characters that a URL has to escape."""
_numbers = count()


class PostgresServer:
    """A running server that listens on a socket in its own folder and asks for a password."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def url(self, database: str, *, user: str = "sweep", password: str = PASSWORD) -> str:
        escaped = password.replace("/", "%2F").replace("@", "%40").replace(" ", "%20")
        return f"postgresql+psycopg://{user}:{escaped}@/{database}?host={self.folder}"

    def execute(self, statement: str, *, database: str = "postgres") -> None:
        with psycopg.connect(
            host=str(self.folder), user="sweep", password=PASSWORD, dbname=database, autocommit=True
        ) as connection:
            connection.execute(statement.encode())

    def create_database(self) -> str:
        """The name of a new empty database."""
        name = f"test_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return name


def _server_program(name: str) -> str | None:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(installed[-1]) if installed else None)


def _unprivileged_user() -> str | None:
    """PostgreSQL refuses to run as root; anyone else runs it as themselves."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for the whole session, without syncing to disk: its data dies with the session."""
    initdb, postgres = _server_program("initdb"), _server_program("postgres")
    if initdb is None or postgres is None:
        pytest.skip("no PostgreSQL server is installed (initdb and postgres, in PATH or /usr/lib/postgresql)")
    user = _unprivileged_user()
    with tempfile.TemporaryDirectory(prefix="pg") as name:  # a short path: a socket's may have 107 characters
        folder = Path(name)
        password_file = folder / "password"
        password_file.write_text(PASSWORD)
        if user is not None:
            for path in (folder, password_file):
                shutil.chown(path, user)
        data = folder / "data"
        subprocess.run(
            [initdb, "-D", data, "-U", "sweep", "--auth=scram-sha-256", f"--pwfile={password_file}", "--no-sync"],
            check=True,
            capture_output=True,
            user=user,
            cwd=folder,
        )
        options = {"listen_addresses": "", "unix_socket_directories": str(folder), "fsync": "off"}
        command = [postgres, "-D", str(data), *(f"--{key}={value}" for key, value in options.items())]
        with (folder / "log").open("w") as log:
            process = subprocess.Popen(command, user=user, cwd=folder, stdout=log, stderr=log)
        server = PostgresServer(folder)
        try:
            _wait_until_it_answers(server, process)
            yield server
        finally:
            process.send_signal(signal.SIGQUIT)  # at once, without writing anything to disk
            process.wait(timeout=30)


def _wait_until_it_answers(server: PostgresServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            return server.execute("SELECT 1")
        except psycopg.OperationalError:
            log = (server.folder / "log").read_text()
            assert process.poll() is None, f"the PostgreSQL server ended: {log}"
            assert time.monotonic() < deadline, f"the PostgreSQL server does not answer: {log}"
            time.sleep(0.05)


@pytest.fixture(scope="session")
def postgres_store(postgres_server: PostgresServer) -> str:
    """The name of a database with a store in it, emptied before each use: that is faster than one for each test."""
    name = postgres_server.create_database()
    open_store(postgres_server.url(name)).close()
    return name


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store that does not exist yet; on the server, a schema of its own, faster than a database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'results' / 'results.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    schema = f"test_{next(_numbers)}"
    server.execute(f"CREATE SCHEMA {schema}")
    return server.url("postgres") + f"&options=-csearch_path%3D{schema}"


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of a store without trials, or of an empty folder where opening makes one."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'results.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    name: str = request.getfixturevalue("postgres_store")
    server.execute(f"TRUNCATE {', '.join(metadata.tables)}", database=name)
    return server.url(name)


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An open store without trials."""
    with open_store(store_url) as opened:
        yield opened
