from __future__ import annotations

import shutil
import signal
import socketserver
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from sqlalchemy import create_engine, text

from orchestrator.store import Store, open_store
from orchestrator.store.troubles import user_errors
from tests.support.postgres import PASSWORD, PostgresServer
from tests.support.store_rows import KEY, RUN, SPECTRUM, ids, outcome, plan
from trainables.errors import UserError

TRIALS = ids(plan(4))


def begin(path: Path) -> Store:
    store = open_store(str(path))
    store.register(KEY, plan(4))
    return store


def delete(path: Path) -> None:
    path.unlink()


def delete_folder(path: Path) -> None:
    shutil.rmtree(path.parent)


def replace(path: Path) -> None:
    shutil.copy(path, path.with_suffix(".copy"))
    path.with_suffix(".copy").replace(path)


@pytest.mark.parametrize("change", [delete, delete_folder, replace])
def test_deleted_file_is_noticed(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "results" / "results.db"
    with begin(path) as store:
        change(path)
        for call in (
            lambda: store.claim(TRIALS, owner="a", lease_s=60),
            lambda: store.renew("a", 60),
            lambda: store.record(outcome(TRIALS[0]), run_id=1),
            lambda: store.trials(KEY),
        ):
            with pytest.raises(
                UserError, match=r"was deleted or replaced.* run the same command again"
            ):
                call()
    with begin(path) as store:  # the store that is now in place can be used
        assert store.claim(TRIALS, owner="a", lease_s=60)


@contextmanager
def meanwhile(action: Callable[[], None]) -> Iterator[None]:
    thread = threading.Thread(target=action)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_long_transaction_is_awaited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("orchestrator.store.database.BUSY_TIMEOUT_S", 0.05)
    monkeypatch.setattr("orchestrator.store.database.AGAIN_S", 0.05)
    path = tmp_path / "results.db"
    with begin(path) as store, closing(sqlite3.connect(path, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")

        def end() -> None:
            time.sleep(0.5)
            other.rollback()

        with meanwhile(end):
            assert store.claim(TRIALS, owner="a", lease_s=60) == dict.fromkeys(TRIALS, 1)
        printed = capsys.readouterr().err
        assert printed.count("waiting up to 3 minutes.\n") == printed.count("\n") == 1
        waits: list[float] = []
        with open_store(
            str(path), create=False, away_s=0.2, on_wait=lambda: waits.append(time.monotonic())
        ) as impatient:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(
                UserError, match="another process has been writing to it for too long"
            ):
                impatient.claim(TRIALS, owner="a", lease_s=60)
        assert waits


def test_unfinished_store_is_awaited(tmp_path: Path) -> None:
    path = tmp_path / "results.db"
    with closing(sqlite3.connect(path, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")

        def end() -> None:
            time.sleep(0.2)
            other.commit()

        with meanwhile(end), open_store(str(path)) as store:
            assert store.studies() == []


def freeze(server: PostgresServer) -> None:
    server.signal(signal.SIGSTOP)


def thaw(server: PostgresServer) -> None:
    server.signal(signal.SIGCONT)


@pytest.mark.parametrize(
    ("leave", "come_back", "away_s"),
    [(PostgresServer.stop, PostgresServer.start, 2.0), (freeze, thaw, 3.5)],
)
def test_absent_server_is_awaited(
    postgres_server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    leave: Callable[[PostgresServer], None],
    come_back: Callable[[PostgresServer], None],
    away_s: float,
) -> None:
    monkeypatch.setattr("orchestrator.store.database.ANSWER_S", 0.5)
    url = postgres_server.url(postgres_server.create_database())
    with open_store(f"{url}&connect_timeout=2") as store:
        store.register(KEY, plan(4))
        run_id = store.begin_run(RUN)
        leave(postgres_server)

        def go_on() -> None:
            time.sleep(away_s)
            come_back(postgres_server)

        with meanwhile(go_on):
            assert store.record(outcome(TRIALS[0]), run_id=run_id, spectrum=SPECTRUM) is True
        printed = capsys.readouterr().err
        assert printed.count("waiting up to") == printed.count("\n") == 1
        assert PASSWORD not in printed
        assert store.states(TRIALS[:1]) == {TRIALS[0]: "done"}


class RefusingServer(socketserver.BaseRequestHandler):
    WORDS = b"SFATAL\0VFATAL\0C57P03\0Mstarts \x1b[2J\0\0"

    def handle(self) -> None:
        self.request.recv(1024)
        self.request.sendall(b"E" + (4 + len(self.WORDS)).to_bytes(4, "big") + self.WORDS)


def test_server_text_is_escaped(
    postgres_server: PostgresServer, capsys: pytest.CaptureFixture[str]
) -> None:
    with open_store(postgres_server.url(postgres_server.create_database())) as store:
        postgres_server.stop()
        address = postgres_server.folder / ".s.PGSQL.5432"
        address.unlink(missing_ok=True)
        with socketserver.UnixStreamServer(str(address), RefusingServer) as stranger:

            def start() -> None:
                stranger.handle_request()
                address.unlink()
                postgres_server.start()

            with meanwhile(start):
                assert store.studies() == []
    stderr = capsys.readouterr().err
    assert "starts \\x1b[2J" in stderr and "\x1b" not in stderr


def test_deadlock_is_no_damage(postgres_server: PostgresServer) -> None:
    engine = create_engine(postgres_server.url(postgres_server.create_database()))
    deadlock = "DO $$ BEGIN RAISE EXCEPTION 'deadlock' USING ERRCODE = '40P01'; END $$"
    refused = pytest.raises(UserError, match="same rows")
    with engine.connect() as connection, refused, user_errors("store"):
        connection.execute(text(deadlock))
    engine.dispose()
