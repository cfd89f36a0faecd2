"""Drivers that are stopped or killed: what was done stays, nothing is done twice, a search goes on as it would have.

Each driver is a process with a Ray of its own; the run that goes on is one in this process.
"""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from tests.support import driver_program, measuring_program, scripted_measurements, scripted_tuning, tuning_program
from tests.support.driver_process import TRIALS, Driver, count, wait_for_starts
from tests.support.scripted_trials import SLOW, log_lines


def states(folder: Path) -> list[str]:
    with open_store(f"sqlite:///{folder}/results.db") as store:
        return [row.state for row in store.trials(driver_program.KEY)]


def ends(folder: Path) -> Counter[str]:
    """How often what came to its end."""
    return Counter(line for line in log_lines(folder) if not line.startswith("start"))


def test_sigterm_ends_the_sweep_within_ten_seconds_and_gives_trials_back(tmp_path: Path) -> None:
    driver = Driver(tmp_path)
    wait_for_starts(tmp_path, driver, 3)
    start_s = time.monotonic()
    driver.process.send_signal(signal.SIGTERM)
    summary, errors = driver.end(timeout_s=20)
    assert time.monotonic() - start_s < 10
    assert summary["interrupted"]
    assert "Traceback" not in errors
    counted = Counter(states(tmp_path))
    assert counted == {"done": count(tmp_path, "end"), "planned": TRIALS - counted["done"]}
    assert counted["planned"] > 0


AT_A_MOMENT = """
import os, signal, sys, threading
from pathlib import Path
import ray
from ray._private.node import Node
from orchestrator.store.store import Store
from tests.support import driver_program

def terminated(function, after_s):
    def call(*arguments, **options):
        threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return function(*arguments, **options)
    return call

def killed_before(function):
    return lambda *arguments, **options: os.kill(os.getpid(), signal.SIGKILL)

def killed_after(function):
    return lambda *arguments, **options: (function(*arguments, **options), os.kill(os.getpid(), signal.SIGKILL))

MOMENT
driver_program.main(Path(sys.argv[1]), int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    ("moment", "state"),
    [
        ("ray.init = terminated(ray.init, 0.5)", "planned"),
        ("Node.kill_all_processes = terminated(Node.kill_all_processes, 0.2)", "done"),
    ],
    ids=["starts", "ends"],
)
def test_a_signal_while_ray_starts_or_ends_is_not_lost(tmp_path: Path, moment: str, state: str) -> None:
    """Both last a second or more, so the signal comes within them."""
    driver = Driver(tmp_path, "-c", AT_A_MOMENT.replace("MOMENT", moment), trials=2)
    summary, errors = driver.end(timeout_s=60)
    assert summary["interrupted"]
    assert "Traceback" not in errors
    assert states(tmp_path) == [state] * 2


@pytest.mark.usefixtures("one_ray")
@pytest.mark.parametrize(
    "moment",
    ["Store.record = killed_before(Store.record)", "Store.record = killed_after(Store.record)", None],
    ids=["before a commit", "after a commit", "in the middle of trials"],
)
def test_after_sigkill_the_next_run_finishes_and_repeats_nothing(tmp_path: Path, moment: str | None) -> None:
    if moment is None:
        driver = Driver(tmp_path)
        wait_for_starts(tmp_path, driver, 2)
        time.sleep(random.uniform(0.0, 1.5))
        driver.process.kill()
    else:
        driver = Driver(tmp_path, "-c", AT_A_MOMENT.replace("MOMENT", moment))
    assert driver.process.wait(timeout=60) == -signal.SIGKILL
    start_s = time.monotonic()
    driver_program.main(tmp_path, TRIALS)
    assert time.monotonic() - start_s < 50, "waited for the lease of a driver that is known to be dead"
    assert states(tmp_path) == ["done"] * TRIALS
    assert ends(tmp_path) == {f"end {seed}": 1 for seed in range(SLOW, SLOW + TRIALS)}


@pytest.mark.usefixtures("one_ray")
def test_after_sigkill_while_it_measures_the_next_run_completes_and_repeats_nothing(tmp_path: Path) -> None:
    driver = Driver(tmp_path, "-m", "tests.support.measuring_program")
    wait_for_starts(tmp_path, driver, 3)
    time.sleep(random.uniform(0.0, 1.0))
    driver.process.kill()
    driver.process.wait()
    measurements = TRIALS * len(scripted_measurements.NAMES)
    assert 0 < count(tmp_path, "end") < measurements
    measuring_program.main(tmp_path, TRIALS)
    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        assert sum(len(row["metrics"]) for row in store.results(scripted_measurements.KEY)) == measurements
    assert len(ends(tmp_path)) >= measurements - 2, "but for files whose worker died before it wrote the line"
    assert set(ends(tmp_path).values()) == {1}


def tuned(folder: Path) -> list[tuple[str, str, str, list[float]]]:
    with open_store(f"sqlite:///{folder}/results.db") as store:
        return [
            (row.name, row.trial_id, row.state, [epoch.valid_loss for epoch in store.epochs(row.trial_id)])
            for row in store.trials(scripted_tuning.KEY)
        ]


@pytest.mark.usefixtures("one_ray")
def test_a_search_that_is_killed_three_times_ends_with_the_trials_of_an_undisturbed_one(tmp_path: Path) -> None:
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    for folder in (undisturbed, disturbed):
        folder.mkdir()
    tuning_program.main(undisturbed, 1)
    for _ in range(3):
        driver = Driver(disturbed, "-m", "tests.support.tuning_program", trials=1)
        wait_for_starts(disturbed, driver, 1)
        time.sleep(random.uniform(0.0, 0.6))
        driver.process.kill()
        driver.process.wait()
    tuning_program.main(disturbed, 1)
    assert tuned(disturbed) == tuned(undisturbed)
    assert "pruned" in {state for _, _, state, _ in tuned(disturbed)}
    assert set(Counter(line.split()[1] for line in ends(disturbed).elements()).values()) == {1}, "trained twice"
