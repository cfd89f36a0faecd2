"""Tests that a stopped or killed driver loses no finished work and repeats none.

A driver that gets a signal while Ray starts or ends has its own Ray. The other drivers share one
Ray.
"""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import ray
from ray._private.node import Node

from orchestrator.store import Store, open_store
from tests.support import scripted_measurements, scripted_tuning
from tests.support.drivers import KEY, measure, train, tune
from tests.support.one_ray import start_ray
from tests.support.processes import Process
from tests.support.scripted_trials import SLOW, SOUND, log_lines

SEEDS = range(SLOW, SLOW + 4)
TRAIN = partial(train, options={"max_concurrent": 1})
LONG_NAME = "scratch-of-a-cluster-job-with-a-long-name"
# Patches the driver's own process, which ends with the test, so nothing undoes the patches.
PATCH = pytest.MonkeyPatch()


def states(folder: Path) -> list[str]:
    with open_store(f"sqlite:///{folder}/results.db") as store:
        return [row.state for row in store.trials(KEY)]


def ends(folder: Path) -> Counter[str]:
    return Counter(line for line in log_lines(folder) if not line.startswith("start"))


def starts(folder: Path) -> int:
    return len(log_lines(folder)) - ends(folder).total()


def test_sigterm_returns_trials_within_10_s(tmp_path: Path) -> None:
    driver = Process(tmp_path, TRAIN, tmp_path, SEEDS, ray=start_ray())
    driver.wait_until(lambda: starts(tmp_path) >= 2)
    driver.signal(signal.SIGTERM)
    [summary] = driver.end(timeout_s=10)
    assert summary["interrupted"] and "Traceback" not in driver.errors
    counted = Counter(states(tmp_path))
    assert counted == {"done": ends(tmp_path).total(), "planned": len(SEEDS) - counted["done"]}
    assert counted["planned"] > 0


def terminated() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def terminated_while_ray_starts() -> None:
    start = ray.init

    def init(**options: Any) -> Any:
        threading.Timer(0.5, terminated).start()
        return start(**options)

    PATCH.setattr(ray, "init", init)


def terminated_while_ray_ends() -> None:
    end = Node.kill_all_processes

    def end_after_the_signal(*arguments: Any, **options: Any) -> None:
        time.sleep(0.2)  # Ray lets SIGTERM kill this process for a few milliseconds
        terminated()
        end(*arguments, **options)

    PATCH.setattr(Node, "kill_all_processes", end_after_the_signal)


def killed_before_a_commit() -> None:
    PATCH.setattr(Store, "record", lambda *_, **__: killed())


def killed_after_a_commit() -> None:
    record = Store.record

    def record_and_die(*arguments: Any, **options: Any) -> None:
        record(*arguments, **options)
        killed()

    PATCH.setattr(Store, "record", record_and_die)


@pytest.mark.parametrize(
    ("moment", "state"),
    [(terminated_while_ray_starts, "planned"), (terminated_while_ray_ends, "done")],
)
def test_signals_count_while_ray_starts(
    tmp_path: Path, moment: Callable[[], None], state: str
) -> None:
    temporary = tmp_path / LONG_NAME
    temporary.mkdir()
    call = partial(TRAIN, moment=moment)
    driver = Process(tmp_path, call, tmp_path, [SOUND], TMPDIR=str(temporary))
    [summary] = driver.end()
    assert summary["interrupted"] and "Traceback" not in driver.errors
    assert states(tmp_path) == [state]


def test_sigkill_at_boundaries_repeats_nothing(tmp_path: Path) -> None:
    seeds = range(SLOW, SLOW + 9)  # a killed driver's workers may still finish their trials
    train_two = partial(train, options={"max_concurrent": 2})
    driver = Process(tmp_path, train_two, tmp_path, seeds, ray=start_ray())
    driver.wait_until(lambda: starts(tmp_path) >= 2)
    time.sleep(random.uniform(0.0, 1.5))
    driver.kill()
    for moment in (killed_before_a_commit, killed_after_a_commit):
        call = partial(TRAIN, moment=moment)
        driver = Process(tmp_path, call, tmp_path, seeds, ray=start_ray())
        driver.end(status=-signal.SIGKILL)
        assert "done" in states(tmp_path) or moment is killed_before_a_commit
        assert {"planned", "running"} & set(states(tmp_path))
    reports: list[Any] = []
    TRAIN(reports.append, tmp_path, seeds)
    assert reports[0]["notes"] == [], "no damaged result, and no wait for a dead driver's lease"
    assert states(tmp_path) == ["done"] * len(seeds)
    # A worker may have died between its result and its log line.
    assert len(ends(tmp_path)) >= len(seeds) - 4 and set(ends(tmp_path).values()) == {1}


def test_sigkill_while_measuring_repeats_nothing(tmp_path: Path) -> None:
    driver = Process(tmp_path, measure, tmp_path, SEEDS, ray=start_ray())
    driver.wait_until(lambda: ends(tmp_path))
    time.sleep(random.uniform(0.0, 1.0))
    driver.kill()
    count = len(SEEDS) * len(scripted_measurements.NAMES)
    assert 0 < ends(tmp_path).total() < count
    measure(print, tmp_path, SEEDS)
    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        rows = store.results(scripted_measurements.KEY)
    assert sum(len(row["metrics"]) for row in rows) == count
    # A worker may have died between a file and its log line.
    assert len(ends(tmp_path)) >= count - 2 and set(ends(tmp_path).values()) == {1}


def tuned(folder: Path) -> list[tuple[str, str, str, list[float]]]:
    with open_store(f"sqlite:///{folder}/results.db") as store:
        return scripted_tuning.table(store)


@pytest.mark.chaos(1, 100)
@pytest.mark.timeout(0)
def test_killed_search_has_same_trials(tmp_path: Path, rounds: int) -> None:
    start_ray()
    searches = [tmp_path / str(number) for number in range(rounds + 1)]
    for number, folder in enumerate(searches):
        folder.mkdir()
        if number > 0:
            driver = Process(tmp_path, tune, folder, ray=start_ray())
            driver.wait_until(lambda folder=folder: starts(folder) > 0)  # type: ignore[misc]
            time.sleep(random.uniform(0.0, 1.5))
            if driver.is_alive():
                driver.kill()
        tune(print, folder)
        counted = Counter(line.split()[1] for line in ends(folder).elements())
        assert set(counted.values()) == {1}, "trained twice"
    tables = [tuned(folder) for folder in searches]
    assert "pruned" in {state for _, _, state, _ in tables[0]}
    assert [table for table in tables if table != tables[0]] == []
