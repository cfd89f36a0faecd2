"""A Ray without the private parts that are used: the program works and says what is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from orchestrator.cluster import ray_private
from orchestrator.schedule import run_trials
from orchestrator.store import Store, StudyKey
from tests.support.notes import Heard
from tests.support.one_ray import start_ray
from tests.support.scripted_trials import RAISES, SOUND, planned, work_in

KEY = StudyKey(study="private", scale="smoke", corpus="none")


@pytest.mark.parametrize("name", ray_private.LOSSES)
def test_installed_ray_has_the_private_name(name: str) -> None:
    assert ray_private.find(name) is not None


def lack(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Make these names missing, for the product and not for Ray itself."""
    find = ray_private.find

    def find_others(name: str) -> Any:
        return None if name in names else find(name)

    monkeypatch.setattr(ray_private, "find", find_others)


def states_of_a_sweep(store: Store, folder: Path) -> list[str]:
    plan = planned([SOUND, RAISES])
    store.register(KEY, plan)
    run_trials(plan, work_in(folder, store, study=KEY, listener=Heard()))
    return [row.state for row in store.trials(KEY)]


@pytest.mark.usefixtures("one_ray")
@pytest.mark.parametrize("name", ray_private.LOSSES)
def test_sweep_ends_without_a_private_name(
    name: str, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack(monkeypatch, name)
    assert states_of_a_sweep(store, tmp_path) == ["done", "failed"]


@pytest.mark.usefixtures("no_ray")
def test_ray_starts_without_private_names_and_losses_are_reported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lack(monkeypatch, *ray_private.LOSSES)
    heard = Heard()
    start_ray(heard.note)
    assert len(heard.notes) == len(ray_private.LOSSES) == 6
    assert all(note.startswith("Ray 2.") for note in heard.notes)
    assert states_of_a_sweep(store, tmp_path) == ["done", "failed"]
