"""Ray's folder and its start on this machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import ray

from orchestrator.cluster.connection import connected
from orchestrator.cluster.run_options import RunOptions
from orchestrator.cluster.scratch import LONGEST_BASE, scratch_folder
from orchestrator.storage.storage import FolderStorage
from trainables.errors import UserError


@pytest.fixture
def long_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go: a folder whose path is too long for Ray's sockets."""
    base = tmp_path / ("long" * 20)
    base.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    return base


def test_ray_gets_a_folder_with_a_short_path_wherever_temporary_files_go(long_base: Path) -> None:
    assert len(str(long_base)) > LONGEST_BASE
    with scratch_folder() as folder:
        assert folder.is_dir()
        assert len(str(folder)) <= LONGEST_BASE + len("/sweep-12345678")
    assert not folder.exists()


def test_no_place_for_temporary_files_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/proc/nothing")
    with pytest.raises(UserError, match="in /proc/nothing none can be made"), scratch_folder():
        pass


@pytest.mark.usefixtures("no_ray")
def test_a_ray_that_cannot_start_is_told_in_a_sentence(
    long_base: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.cluster.scratch.LONGEST_BASE", 1000)
    with (
        pytest.raises(UserError, match=r"Ray cannot be started on this machine .*AF_UNIX"),
        connected(RunOptions(storage=FolderStorage(long_base)), print),
    ):
        pass
    assert not ray.is_initialized()
