from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text

from orchestrator.store import open_store
from orchestrator.store.schema import UPGRADES
from tests.support.processes import Process, Report
from tests.support.store_rows import KEY, RUN, SPECTRUM, everything, ids, outcome, plan


def second_version(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE trial ADD COLUMN measurements INTEGER"))
    connection.execute(
        text(
            "UPDATE trial SET measurements = "
            "(SELECT count(*) FROM result WHERE result.trial_id = trial.id)"
        )
    )


@pytest.fixture
def newer() -> Iterator[None]:
    UPGRADES.append(second_version)
    yield
    UPGRADES.remove(second_version)


def count(url: str) -> object:
    engine = create_engine(url)
    with engine.connect() as connection:
        version = connection.execute(text("SELECT version FROM schema_version")).scalar_one()
        if version == 1:
            return None
        return connection.execute(text("SELECT sum(measurements) FROM trial")).scalar_one()


def upgrade_and_die(report: Report, url: str) -> None:
    def second_half(connection: Connection) -> None:
        second_version(connection)
        report("in the midst of it")
        os.kill(os.getpid(), signal.SIGKILL)

    UPGRADES.append(second_half)
    open_store(url)


def test_upgrade_is_atomic(store_url: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with open_store(store_url) as store:
        store.register(KEY, plan(2))
        store.record(outcome(ids(plan(1))[0]), run_id=store.begin_run(RUN), spectrum=SPECTRUM)
        before = everything(store)
    killed = Process(tmp_path, upgrade_and_die, store_url)
    assert killed.end(status=-signal.SIGKILL) == ["in the midst of it"]
    assert count(store_url) is None
    request.getfixturevalue("newer")
    for _ in range(2):
        with open_store(store_url, create=False) as store:
            assert everything(store) == before
        assert count(store_url) == 2
