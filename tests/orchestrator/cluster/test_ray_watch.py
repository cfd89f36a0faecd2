"""Tests with a simulated death of Ray. `test_slow_start` and tests/kills/ kill a real Ray."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
import ray

from orchestrator.cluster import check_ray, connection, ray_watch
from orchestrator.cluster.ray_watch import head_check, watching
from tests.support.command import wait_for
from trainables.errors import UserError


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(ray_watch, "LOOK_S", 0.02)
    monkeypatch.setattr(ray_watch, "HEAD_AWAY_S", 0.2)
    yield
    ray_watch._reason = None


def trouble() -> str:
    try:
        check_ray()
    except UserError as error:
        return str(error)
    return ""


@pytest.mark.usefixtures("one_ray")
def test_silent_head_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with watching(head_check()):
        time.sleep(0.6)
        assert trouble() == "", "it answers"
        monkeypatch.setattr(ray_watch, "signs", lambda _keys: None)
        message = wait_for(trouble, timeout_s=10, event="a report that Ray is silent")
    assert "does not answer any more: run the same command again" in message


def test_hanging_ray_is_left_running(monkeypatch: pytest.MonkeyPatch) -> None:
    ended = threading.Event()
    monkeypatch.setattr(ray, "shutdown", lambda: ended.wait(60))
    monkeypatch.setattr(connection, "END_S", 0.3)
    start_s = time.monotonic()
    connection._end_ray(ThreadPoolExecutor(1))
    assert time.monotonic() - start_s < 30
    ended.set()
