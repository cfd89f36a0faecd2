from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.storage import FolderStorage
from tests.support.filled_storage import fill


@pytest.fixture
def storage(tmp_path: Path) -> FolderStorage:
    return FolderStorage(tmp_path / "results")


@pytest.fixture
def url(storage: FolderStorage) -> str:
    url = f"sqlite:///{storage.root}/results.db"
    fill(url, storage)
    return url
