"""These tests need Linux namespaces and PostgreSQL, so only `make cluster-test` runs them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.namespaces import Cluster, cluster, why_not
from tests.support.postgres import server_program


@pytest.fixture(scope="session", autouse=True)
def _possible() -> None:
    reason = why_not() or (
        None if server_program("postgres") else "no PostgreSQL server is installed"
    )
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Cluster]:
    with cluster(tmp_path) as machines:
        yield machines
