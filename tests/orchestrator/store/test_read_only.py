from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from orchestrator.store import Store, open_store
from tests.support.command import ROOT, environment
from tests.support.store_rows import KEY, plan

BOUND = ["setpriv", "--bounding-set=-dac_override"] if os.geteuid() == 0 else []
"""Command prefix that makes even root obey file permissions."""
READER = """
import sys
from orchestrator.store import open_store
from tests.support.store_rows import KEY
from trainables.errors import UserError

url, store = sys.argv[1], None
for line in sys.stdin:
    try:
        store = store or open_store(url, create=False)
        if line.strip() == "write":
            store.ask_to_stop(KEY)
        print(len(store.trials(KEY)), flush=True)
    except UserError as error:
        print(error, flush=True)
        store and store.close()
        store = None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with open_store(str(tmp_path / "results.db")) as store:
        store.register(KEY, plan(2))
    tmp_path.chmod(0o555)
    yield tmp_path
    tmp_path.chmod(0o755)


@pytest.fixture
def reader(folder: Path) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*BOUND, sys.executable, "-c", READER, str(folder / "results.db")],
        cwd=ROOT,
        env={**environment(), "PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def answer(reader: subprocess.Popen[str], word: str = "read") -> str:
    assert reader.stdin is not None and reader.stdout is not None
    reader.stdin.write(f"{word}\n")
    reader.stdin.flush()
    return reader.stdout.readline().strip()


def test_reading_leaves_no_file(folder: Path, reader: subprocess.Popen[str]) -> None:
    assert [answer(reader), answer(reader)] == ["2", "2"]
    assert "it is read-only" in answer(reader, "write")
    assert answer(reader) == "2"
    assert [path.name for path in folder.iterdir()] == ["results.db"]


def test_other_writers_are_noticed(folder: Path, reader: subprocess.Popen[str]) -> None:
    assert answer(reader) == "2"
    with writing(folder) as writer:
        writer.register(KEY, plan(3))
    assert "writes to the results store" in answer(reader)
    assert answer(reader) == "3"
    with writing(folder) as writer:
        writer.register(KEY, plan(4))
        assert "writes to the results store" in answer(reader)
        assert answer(reader) == "4", "the fourth trial is only in the log"


@contextmanager
def writing(folder: Path) -> Iterator[Store]:
    folder.chmod(0o755)
    with open_store(str(folder / "results.db")) as writer:
        yield writer
    folder.chmod(0o555)
