"""One finished smoke sweep, which many tests read."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.command import sweep
from tests.support.one_ray import start_ray


@pytest.fixture(scope="session")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The storage of `gss_grid` at scale smoke, four trials done. Tests must not change it."""
    start_ray()
    storage = tmp_path_factory.mktemp("finished")
    answer = sweep("gss_grid", "--scale", "smoke", "--max-concurrent", "1", "--storage", storage)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    return storage


@pytest.fixture
def copied(finished: Path, tmp_path: Path) -> Path:
    """A copy of that storage."""
    return shutil.copytree(finished, tmp_path / "copied")
