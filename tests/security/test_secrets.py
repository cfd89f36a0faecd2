from __future__ import annotations

import os
import re
import secrets
import signal
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from orchestrator.cluster import token_path
from orchestrator.cluster.scratch import scratch_folder
from tests.support.command import ROOT, environment, wait_for
from tests.support.postgres import PostgresServer

NAMES = ("PGPASSWORD", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "MLFLOW_TRACKING_PASSWORD")
PAGES = (
    "api/jobs/",
    "nodes?view=details",
    "nodes?view=summary",
    "logical/actors",
    "api/v0/workers?detail=1",
)


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a path that is short enough for Ray's sockets."""
    with tempfile.TemporaryDirectory(
        prefix="sec", dir="/tmp", ignore_cleanup_errors=True
    ) as folder:
        yield Path(folder)


def contents(folder: Path) -> Iterator[tuple[Path, bytes]]:
    for path in folder.rglob("*"):
        try:
            if path.is_file():
                yield path, path.read_bytes()
        except OSError:
            continue


def command_lines() -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        yield line


def shown_by(dashboard: str, page: str) -> str:
    request = urllib.request.Request(f"{dashboard}/{page}")
    request.add_header("Authorization", f"Bearer {Path(token_path()).read_text().strip()}")
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, ConnectionError):
        return ""


def store_texts(url: str) -> Iterator[str]:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        names = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'test_secrets'"
        ).fetchall()
        assert len(names) > 5
        for (name,) in names:
            rows = connection.execute(f"SELECT * FROM test_secrets.{name}".encode())
            yield from map(str, rows)


@contextmanager
def running(
    words: Sequence[str | Path], variables: Mapping[str, str], printed: Path
) -> Iterator[subprocess.Popen[bytes]]:
    with printed.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "sweep.py", *words], cwd=ROOT, start_new_session=True,
            env={**environment(), **variables, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL, stdout=output, stderr=output,
        )  # fmt: skip
    try:
        yield process
        os.killpg(process.pid, signal.SIGINT)
        process.wait(60)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_temporary_folders_are_private(short: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(short))
    before = os.umask(0)
    try:
        with scratch_folder() as folder:
            assert folder.parent == short
            for path in (folder, *folder.iterdir()):
                assert not path.stat().st_mode & 0o077, f"others may read {path}"
    finally:
        os.umask(before)


@pytest.mark.chaos(0, 1)
def test_run_leaves_no_secret(tmp_path: Path, short: Path, postgres_server: PostgresServer) -> None:
    planted = {name: secrets.token_hex(16) for name in NAMES}
    role = f"CREATE ROLE planted SUPERUSER LOGIN PASSWORD '{planted['PGPASSWORD']}'"
    for statement in (role, "CREATE SCHEMA test_secrets"):
        postgres_server.execute(statement)
    url = f"postgresql+psycopg://planted@/postgres?host={postgres_server.folder}&options=-csearch_path%3Dtest_secrets"
    storage, printed = tmp_path / "results", tmp_path / "printed.txt"
    words = ("gss_grid", "--ray-dashboard", "--scale", "smoke", "--set", "training.epochs=100000",
             "--log-to", "tensorboard", "--log-to", "mlflow", "--storage", storage,
             "--store", url)  # fmt: skip
    leaks: list[str] = []

    def look(source: str, text: str | bytes) -> None:
        raw = text.encode() if isinstance(text, str) else text
        leaks.extend(
            f"{name} in {source}" for name, value in planted.items() if value.encode() in raw
        )

    with running(words, planted | {"TMPDIR": str(short)}, printed) as process:

        def dashboard() -> str:
            assert process.poll() is None, printed.read_text()
            match = re.search(r"http://127\.0\.0\.1:\d+", printed.read_text())
            return match[0] if match else ""

        address = wait_for(dashboard, timeout_s=120, event="Ray's dashboard")
        checkpoints = "trials/*/*/checkpoint-*"
        wait_for(lambda: [*storage.glob(checkpoints)], timeout_s=120, event="a checkpoint")
        jobs = wait_for(lambda: shown_by(address, PAGES[0]), timeout_s=90, event="the list of jobs")
        assert "sweep.py gss_grid" in jobs, jobs
        for page in PAGES:
            look(f"the dashboard's {page}", shown_by(address, page))
        for line in command_lines():
            look(f"the process {line[:200]}", line)
        for path in (*short.iterdir(), Path(token_path())):
            assert not path.stat().st_mode & 0o077, f"others may read {path}"
        logged = list(contents(short))
        assert any("session_" in str(path) for path, _ in logged), (
            "the test must search Ray's logs, too"
        )
    for path, content in (*logged, *contents(storage), *contents(short), *contents(tmp_path)):
        look(str(path), content)
    for row in store_texts(postgres_server.url("postgres")):
        look("the store", row)
    assert (storage / "mlflow.db").exists() and [*storage.glob("tensorboard/*/*/events*")]
    assert leaks == []
