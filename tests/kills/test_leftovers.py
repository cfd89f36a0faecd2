from __future__ import annotations

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


def test_only_killed_sweeps_are_cleaned_up(
    short_base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call = partial(train, options={"ray_dashboard": True, "max_concurrent": 1})
    sweep = Process(tmp_path, call, tmp_path, range(LONG, LONG + 20), TMPDIR=str(short_base))
    wait_for(lambda: len([*short_base.iterdir()]) == 2, timeout_s=120, event="Ray's and Tune's")
    monkeypatch.setattr(tempfile, "tempdir", str(short_base))
    folders, working = {*short_base.iterdir()}, mentioning(short_base).keys()
    remove_leftovers()
    assert {*short_base.iterdir()} == folders
    assert len(working) > 5
    assert working <= mentioning(short_base).keys()
    sweep.kill()
    assert remove_leftovers() >= 2, "other tests may have left folders in /tmp, too"
    assert [*short_base.iterdir()] == []
    assert mentioning(short_base) == {}
