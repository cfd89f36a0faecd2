from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.store import open_store
from orchestrator.store.address import has_secret, parse, printable
from tests.support.postgres import PASSWORD, PostgresServer
from tests.support.small_disk import change, small_disk
from tests.support.store_rows import KEY, execute, plan
from trainables.errors import UserError


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(UserError) as caught:
        call()
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def test_plain_path_is_sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with open_store("results/deep/results.db") as store:
        # Ray's workers change their working directory, too: the store must stay in place.
        monkeypatch.chdir("/")
        store.register(KEY, plan(1))
    for address in (
        str(tmp_path / "results/deep/results.db"),
        f"sqlite:///{tmp_path}/results/deep/results.db",
    ):
        with open_store(address, create=False) as store:
            assert len(store.trials(KEY)) == 1


def test_missing_store_is_not_created(store_url: str, tmp_path: Path) -> None:
    assert "run a study first" in refusal(lambda: open_store(store_url, create=False))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("address", "rule"),
    [
        ("mysql://user:secret@host/db", "mysql is not supported"),
        ("postgresql+pg8000://u:secret@host/db", "postgresql+pg8000 is not"),
        ("sqlite+x:///a", "sqlite+x is not"),
        ("", "in memory"),
        ("sqlite:///:memory:", "in memory"),
        ("postgresql+psycopg://user:secret@host:port/db", "cannot be read"),
        ("postgresql://user:secret@host/db?port=port", "cannot be read"),
    ],
)
def test_unknown_address_lists_the_choices(address: str, rule: str) -> None:
    sentence = refusal(lambda: open_store(address))
    assert rule in sentence
    assert "a path such as results/results.db, sqlite:///PATH, or postgresql+psycopg://" in sentence
    assert "secret" not in sentence


@pytest.mark.parametrize(
    "address",
    [
        "postgresql+psycopg://me:hunter2@host/results",
        "postgresql+psycopg://host/results?user=me&password=hunter2",
        "postgresql://host/results?sslcert=c.pem&sslpassword=hunter2&user=me&password=hunter2again",
        "postgresql://me:hunter2@host/results?PassWord=hunter2",
        "postgresql://me@host/results?oauth_client_secret=hunter2",
    ],
)
def test_password_is_hidden_but_kept(address: str) -> None:
    url = parse(address)
    text = printable(url)
    assert "hunter2" not in text
    assert all(part in text for part in ("me", "host/results"))
    assert has_secret(address)
    assert "hunter2" in url.render_as_string(hide_password=False)


def test_address_without_secret_is_shown() -> None:
    address = "postgresql+psycopg://me@host:5433/results?passfile=passwords&sslmode=require"
    assert printable(parse(address)) == address
    assert not has_secret(address)


def test_other_versions_are_refused(store_url: str) -> None:
    open_store(store_url).close()
    for version in (0, 9999):
        execute(store_url, f"UPDATE schema_version SET version = {version}")
        assert "another version" in refusal(lambda: open_store(store_url))
    execute(store_url, "DROP TABLE schema_version")
    assert "has the table attempt" in refusal(lambda: open_store(store_url))


def test_foreign_file_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    content = "rank,perplexity\n" * 500
    path.write_text(content)
    assert "not an SQLite database" in refusal(lambda: open_store(str(path)))
    assert path.read_text() == content
    assert "cannot be opened or created" in refusal(lambda: open_store(str(tmp_path)))
    assert "folder" in refusal(lambda: open_store(str(path / "results.db")))
    assert "name too long" in refusal(
        lambda: open_store(str(tmp_path / ("a" * 300) / "results.db"), create=False)
    )


def test_full_disk_loses_no_record(tmp_path: Path) -> None:
    trials = plan(5_000)
    with small_disk(tmp_path / "disk", kib=500) as disk:
        path = str(disk / "results.db")
        with open_store(path) as store:
            store.register(KEY, trials[:10])
            assert "the disk is full" in refusal(lambda: store.register(KEY, trials))
            assert len(store.trials(KEY)) == 10
        change(disk, "size=50m")
        with open_store(path) as store:
            store.register(KEY, trials)


def test_server_refusal_hides_password(
    postgres_server: PostgresServer,
) -> None:
    start_s = time.monotonic()
    nobody_answers = refusal(
        lambda: open_store("postgresql+psycopg://sweep:secret@127.0.0.1:1/results")
    )
    assert time.monotonic() - start_s < 10, "the first connection to a store must fail at once"
    assert "127.0.0.1" in nobody_answers and "check that the server runs" in nobody_answers
    wrong = refusal(lambda: open_store(postgres_server.url("postgres", password="secret")))
    assert "password authentication failed" in wrong and PASSWORD not in wrong
    assert "secret" not in nobody_answers + wrong
    mistyped = refusal(lambda: open_store(postgres_server.url("postgres") + "&ssl=on"))
    assert 'invalid connection option "ssl"' in mistyped
    assert '"nowhere" does not exist' in refusal(lambda: open_store(postgres_server.url("nowhere")))
    name = postgres_server.create_database()
    postgres_server.execute("CREATE ROLE guest LOGIN PASSWORD 'guest'")
    assert "grant that" in refusal(
        lambda: open_store(postgres_server.url(name, user="guest", password="guest"))
    )
    postgres_server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    assert "read-only" in refusal(lambda: open_store(postgres_server.url(name)))
