"""An open store for each test, in SQLite and in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.store import Store, open_store


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """An open store without trials."""
    with open_store(store_url) as opened:
        yield opened
