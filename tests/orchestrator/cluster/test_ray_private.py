from __future__ import annotations

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster import ray_private
from orchestrator.cluster.ray_private import LOSSES
from orchestrator.schedule import run_trials
from orchestrator.store import Store, StudyKey, open_store
from tests.support.notes import RecordingListener
from tests.support.one_ray import start_ray
from tests.support.processes import Process, Report
from tests.support.scripted_trials import RAISES, SOUND, planned, work_in

KEY = StudyKey(study="private", scale="smoke", corpus="none")


@pytest.mark.parametrize("name", LOSSES)
def test_installed_ray_has_private_name(name: str) -> None:
    assert ray_private.find(name) is not None


def find_without(names: Collection[str]) -> Callable[[str], Any]:
    find = ray_private.find
    return lambda name: None if name in names else find(name)


def states_of_a_sweep(store: Store, folder: Path) -> list[str]:
    plan = planned([SOUND, RAISES])
    store.register(KEY, plan)
    run_trials(plan, work_in(folder, store, study=KEY, listener=RecordingListener()))
    return [row.state for row in store.trials(KEY)]


def sweep_without_all(report: Report, folder: Path) -> None:
    vars(ray_private)["find"] = find_without(LOSSES)
    listener = RecordingListener()
    start_ray(listener.note)
    ray_private.name_process("nobody")
    with open_store(f"sqlite:///{folder}/results.db") as store:
        report((states_of_a_sweep(store, folder), listener.notes))


def test_ray_works_without_private_names(tmp_path: Path) -> None:
    ((states, notes),) = Process(tmp_path, sweep_without_all, tmp_path).end(timeout_s=200)
    assert states == ["done", "failed"]
    assert len(notes) == len(LOSSES) == 7
    assert all(note.startswith("Ray 2.") for note in notes)
