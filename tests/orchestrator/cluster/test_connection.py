from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
import ray

from orchestrator.cluster import RunOptions, connected, connection, scratch, scratch_folder
from orchestrator.cluster.scratch import LONGEST_BASE
from orchestrator.storage import FolderStorage
from tests.support.processes import Process, Report
from trainables.errors import UserError


@pytest.fixture
def long_base(tmp_path: Path) -> Path:
    """Return a path that is too long for Ray's sockets."""
    base = tmp_path / ("long" * 20)
    base.mkdir()
    return base


def test_ray_folder_has_short_path(long_base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(long_base))
    assert len(str(long_base)) > LONGEST_BASE
    with scratch_folder() as folder:
        assert folder.is_dir()
        assert len(str(folder)) <= LONGEST_BASE + len("/sweep-12345678")
    assert not folder.exists()


def test_missing_temporary_folder_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nothing")
    with pytest.raises(UserError, match="in /proc/nothing"), scratch_folder():
        pass


def test_missing_dashboard_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "find_spec", lambda _name: None)
    options = RunOptions(storage=FolderStorage(tmp_path), ray_dashboard=True)
    refusal = pytest.raises(UserError, match=r"--ray-dashboard: .*\[dashboard\]")
    with refusal, connected(options, print):
        pass


def start_below(report: Report, base: Path) -> None:
    vars(scratch)["LONGEST_BASE"] = 1000
    with (
        pytest.raises(UserError) as raised,
        connected(RunOptions(storage=FolderStorage(base)), print),
    ):
        pass
    report((str(raised.value), ray.is_initialized()))


def test_ray_start_failure_is_reported(long_base: Path, tmp_path: Path) -> None:
    process = Process(tmp_path, start_below, long_base, TMPDIR=str(long_base))
    ((error, is_up),) = process.end()
    assert re.match("Ray cannot start .*AF_UNIX", error)
    assert not is_up
