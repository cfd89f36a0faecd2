"""A Ray that dies under a sweep is noticed by a look from outside. Real deaths:
tests/kills/test_random_kills.py."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import ray

from orchestrator.cluster import connection, ray_patches, ray_watch
from orchestrator.cluster.ray_watch import RayWatch, check_ray
from tests.support.command import wait_for
from trainables.errors import UserError


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayWatch]:
    monkeypatch.setattr(ray_watch, "_reason", None)
    monkeypatch.setattr(ray_watch, "LOOK_S", 0.02)
    monkeypatch.setattr(ray_watch, "HEAD_LOOK_S", 0.02)
    monkeypatch.setattr(ray_watch, "HEAD_AWAY_S", 0.2)
    watching = RayWatch()
    yield watching
    watching.end()


def trouble() -> str:
    try:
        check_ray()
    except UserError as error:
        return str(error)
    return ""


def test_a_process_of_a_local_ray_that_dies_is_named(
    watch: RayWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead: list[str] = []
    monkeypatch.setattr(ray_patches, "dead_processes", lambda: dead)
    watch.begin(local=True)
    time.sleep(0.2)
    assert trouble() == ""
    dead.append("raylet")
    said = wait_for(trouble, timeout_s=10, what="the death is told")
    assert (
        said
        == "Ray's process raylet died: type the same command again to go on; results and checkpoints are kept."
    )


@pytest.mark.usefixtures("one_ray")
def test_a_head_that_does_not_answer_for_a_while_is_named_and_one_that_does_is_not(
    watch: RayWatch, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch.begin(local=False)
    time.sleep(0.6)
    assert trouble() == "", "it answers"
    monkeypatch.setattr(ray_watch, "signs", lambda _keys: None)
    said = wait_for(trouble, timeout_s=10, what="the silence is told")
    assert said.startswith("The head of the Ray cluster, ")
    assert "does not answer any more: type the same command again" in said


def test_a_ray_that_does_not_end_is_left_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(ray, "shutdown", lambda: ended.wait(60))
    # The Ray that other tests use here ends later, and by itself.
    monkeypatch.setattr(ray_patches, "before_ray_ends_its_processes", lambda _: None)
    monkeypatch.setattr(connection, "END_S", 0.3)
    start_s = time.monotonic()
    connection._end_ray()
    assert time.monotonic() - start_s < 30
    ended.set()
