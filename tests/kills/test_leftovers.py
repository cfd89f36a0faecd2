"""Two sweeps on a machine, each with a Ray of its own: one is killed, one lives and is
interrupted."""

from __future__ import annotations

import signal
import tempfile
from functools import partial
from pathlib import Path

import pytest

from orchestrator.guard import remove_leftovers
from tests.support.command import wait_for
from tests.support.drivers import train
from tests.support.processes import Process
from tests.support.scratch import mentioning, short_base
from tests.support.scripted_trials import LONG

__all__ = ["short_base"]


def folders_of_a_sweep(base: Path, before: set[Path]) -> set[Path]:
    """Return those of Ray and of Tune."""
    folders = set(base.iterdir()) - before
    return folders if len(folders) == 2 else set()


def test_leftovers_of_killed_sweeps_alone_are_removed(
    short_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers: dict[str, Process] = {}
    folders: dict[str, set[Path]] = {}
    for name in ("killed", "lives"):
        storage = tmp_path / name
        storage.mkdir()
        call = partial(train, options={"ray_dashboard": True})
        drivers[name] = Process(
            tmp_path, call, storage, range(LONG, LONG + 20), TMPDIR=str(short_base)
        )
        look = partial(folders_of_a_sweep, short_base, set(short_base.iterdir()))
        folders[name] = wait_for(look, timeout_s=120, what="folders")
    monkeypatch.setattr(tempfile, "tempdir", str(short_base))
    remove_leftovers()
    assert set(short_base.iterdir()) == folders["killed"] | folders["lives"]
    drivers["killed"].kill()
    working = working_in(folders["lives"])
    assert remove_leftovers() >= 2, "and what other tests have left in /tmp by now"
    assert set(short_base.iterdir()) == folders["lives"]
    assert working_in(folders["killed"]) == set()
    assert len(working) > 5
    assert working <= working_in(folders["lives"])
    drivers["lives"].signal(signal.SIGINT)
    [summary] = drivers["lives"].end(timeout_s=20)
    assert summary["interrupted"]
    assert [*short_base.iterdir()] == []
    assert working_in(folders["lives"]) == set()


def working_in(folders: set[Path]) -> set[int]:
    return set().union(*map(mentioning, folders))
