from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.storage import FolderStorage
from orchestrator.sweep import check_store
from tests.orchestrator.schedule import small_sweep
from tests.orchestrator.schedule.faulty_disk import BROKEN, FULL, FaultySweeps, faulty_sweeps
from trainables.errors import UserError


@pytest.fixture(scope="module")
def sweeps(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultySweeps]:
    with faulty_sweeps(tmp_path_factory.mktemp("faulty")) as started:
        yield started


@pytest.fixture(scope="module")
def truth(sweeps: FaultySweeps) -> tuple[list[dict[str, Any]], int]:
    shutil.rmtree(sweeps.folder, ignore_errors=True)
    ended = sweeps.run()
    assert ended.status == 0, ended.text
    return small_sweep.table(sweeps.folder), ended.writes


def problems(folder: Path) -> list[str]:
    try:
        return check_store(f"sqlite:///{folder}/results.db", FolderStorage(folder))
    except UserError as error:
        # The write failed before the first table existed.
        assert "There is no results store" in str(error)
        return []


@pytest.mark.chaos(3, 10_000)
@pytest.mark.parametrize("error", [FULL, BROKEN], ids=["full", "broken"])
@pytest.mark.parametrize("lasting", [True, False], ids=["from then on", "once"])
def test_failing_write_costs_no_number(
    sweeps: FaultySweeps,
    truth: tuple[list[dict[str, Any]], int],
    error: int,
    lasting: bool,
    rounds: int,
) -> None:
    table, writes = truth
    assert [row["state"] for row in table] == ["done", "done"] and writes > 50
    # A few rounds are spread over the sweep; with all rounds, every write fails once.
    step = max(1, writes // rounds)
    for fail_at in range(1, writes + 1, step):
        shutil.rmtree(sweeps.folder)
        ended = sweeps.run(fail_at=fail_at, error=error, lasting=lasting)
        case = f"write {fail_at}: {ended.text}"
        assert ended.status in (0, 2), case
        assert "Traceback" not in ended.text, case
        assert ended.text.count("error: ") == (ended.status == 2), case
        assert ended.status == 2 or small_sweep.table(sweeps.folder) == table, case
        assert problems(sweeps.folder) == [], case
        again = sweeps.run()
        assert again.status == 0, f"{case}, then {again.text}"
        assert small_sweep.table(sweeps.folder) == table, case
