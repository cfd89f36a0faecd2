from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from orchestrator.storage import Storage, storage_at
from orchestrator.storage.bucket import _client
from tests.support.object_store import ObjectStore, object_store

# Switches to another simulated machine, which cannot see the first one's files.
Move = Callable[[str], None]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ObjectStore]:
    with object_store(tmp_path_factory.mktemp("s3")) as started:
        yield started


@pytest.fixture
def move(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Move:
    move_to: Move = lambda machine: monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / machine))  # noqa: E731
    move_to("one")
    return move_to


@pytest.fixture
def url(store: ObjectStore, tmp_path: Path) -> str:
    _client.cache_clear()
    return f"s3://{store.bucket}/{tmp_path.name}"


@pytest.fixture(params=["folder", "object store"])
def storage(request: pytest.FixtureRequest, move: Move, tmp_path: Path) -> Storage:  # noqa: ARG001
    if request.param == "folder":
        (tmp_path / "results").mkdir()
        return storage_at(str(tmp_path / "results"))
    return storage_at(request.getfixturevalue("url"))
