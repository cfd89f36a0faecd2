from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from urllib.parse import quote

import pytest

PASSWORD = "not a secret/@"
"""Password with characters that a URL must escape."""
_numbers = count()
Inside = Callable[[list[str]], list[str]]


class PostgresServer:
    def __init__(
        self,
        folder: Path,
        *,
        password: str = PASSWORD,
        network: tuple[str, str] | None = None,
        inside: Inside = list,
    ) -> None:
        """`folder` needs a short path, because it contains the server's socket.

        `network` is the server's address and the address range of its clients.
        """
        self.folder, self.password = folder, password
        (folder / "password").write_text(password)
        if os.geteuid() == 0:
            for path in (folder, folder / "password"):
                shutil.chown(path, _unprivileged_user())
        data = folder / "data"
        owner = ["-U", "sweep", "--auth=scram-sha-256", f"--pwfile={folder / 'password'}"]
        process = self._run(inside, "initdb", "-D", str(data), *owner, "--no-sync")
        assert process.wait(timeout=120) == 0, self._log()
        options = {"listen_addresses": "", "unix_socket_directories": str(folder), "fsync": "off"}
        if network is not None:
            options["listen_addresses"], clients = network
            with (data / "pg_hba.conf").open("a") as rules:
                rules.write(f"host all all {clients} scram-sha-256\n")
        self._inside = inside
        self._arguments = ["-D", str(data), *(f"--{key}={value}" for key, value in options.items())]
        self.start()

    def start(self) -> None:
        self._process = self._run(self._inside, "postgres", *self._arguments)
        self._wait_until_it_answers()

    def _run(self, inside: Inside, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = inside([*_as_unprivileged_user(), str(server_program(name)), *arguments])
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )

    def _log(self) -> str:
        return (self.folder / "log").read_text()

    def _wait_until_it_answers(self) -> None:
        from psycopg import OperationalError

        deadline_s = time.monotonic() + 30
        while True:
            try:
                return self.execute("SELECT 1")
            except OperationalError:
                assert self._process.poll() is None, f"the PostgreSQL server ended: {self._log()}"
                assert time.monotonic() < deadline_s, (
                    f"the PostgreSQL server does not answer: {self._log()}"
                )
                time.sleep(0.05)

    def url(self, database: str, *, user: str = "sweep", password: str | None = None) -> str:
        escaped = quote(password or self.password, safe="")
        return f"postgresql+psycopg://{user}:{escaped}@/{database}?host={self.folder}"

    def execute(self, statement: str, *, database: str = "postgres") -> None:
        import psycopg  # imported here because tests/gpu runs on hosts without psycopg

        with psycopg.connect(
            host=str(self.folder),
            user="sweep",
            password=self.password,
            dbname=database,
            autocommit=True,
        ) as connection:
            connection.execute(statement.encode())

    def create_database(self) -> str:
        name = f"test_{next(_numbers)}"
        self.execute(f"CREATE DATABASE {name}")
        return name

    def signal(self, number: int) -> None:
        server = self._process.pid
        children = Path(f"/proc/{server}/task/{server}/children").read_text()
        for pid in (server, *map(int, children.split())):
            os.kill(pid, number)

    def stop(self) -> None:
        """Stop at once without flushing to disk."""
        self._process.send_signal(signal.SIGQUIT)
        self._process.wait(timeout=30)


def server_program(name: str) -> str | None:
    installed = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    return shutil.which(name) or (str(installed[-1]) if installed else None)


def _unprivileged_user() -> str:
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def _as_unprivileged_user() -> list[str]:
    """Return a command prefix that changes the user, because PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return []
    user = pwd.getpwnam(_unprivileged_user())
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """Yield the session's server, which never syncs to disk, because its data is temporary."""
    if server_program("postgres") is None:
        pytest.skip(
            "no PostgreSQL server is installed (initdb and postgres, in PATH or "
            "/usr/lib/postgresql)"
        )
    with tempfile.TemporaryDirectory(prefix="pg", dir="/tmp") as folder:
        server = PostgresServer(Path(folder))
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of a new store. In PostgreSQL it is a schema, which is fast to create."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'results' / 'results.db'}"
    server: PostgresServer = request.getfixturevalue("postgres_server")
    schema = f"test_{next(_numbers)}"
    server.execute(f"CREATE SCHEMA {schema}")
    return server.url("postgres") + f"&options=-csearch_path%3D{schema}"
