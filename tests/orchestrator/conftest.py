from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from orchestrator.store.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """Yield an empty store at the path that commands use with `--storage tmp_path`."""
    with open_store(f"sqlite:///{tmp_path}/results.db") as opened:
        yield opened
