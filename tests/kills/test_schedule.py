"""Drivers that are stopped or killed: what was done stays, nothing is trained twice to its end."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from orchestrator.store.records import TrialRow
from tests.support.driver_process import TRIALS, Driver, count, wait_for_starts
from tests.support.driver_program import KEY
from tests.support.scripted_trials import SLOW, log_lines


def rows(folder: Path) -> list[TrialRow]:
    with open_store(f"sqlite:///{folder}/results.db") as store:
        return store.trials(KEY)


@pytest.mark.parametrize("whole_group", [False, True], ids=["SIGTERM", "Ctrl-C in a terminal"])
def test_a_signal_ends_the_sweep_within_ten_seconds_and_gives_trials_back(tmp_path: Path, whole_group: bool) -> None:
    driver = Driver(tmp_path)
    wait_for_starts(tmp_path, driver, 3)
    start_s = time.monotonic()
    if whole_group:
        os.killpg(driver.process.pid, signal.SIGINT)
    else:
        driver.process.send_signal(signal.SIGTERM)
    summary, errors = driver.end(timeout_s=20)
    assert time.monotonic() - start_s < 10
    assert summary["interrupted"]
    assert "Traceback" not in errors
    states = [row.state for row in rows(tmp_path)]
    assert states.count("done") == count(tmp_path, "end")
    assert states.count("planned") == TRIALS - states.count("done") > 0


SIGNAL_DURING = """
import os, signal, sys, threading
from pathlib import Path
import ray
from ray._private.node import Node
from tests.support import driver_program

def signalled(function, after_s):
    def call(*arguments, **options):
        threading.Timer(after_s, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return function(*arguments, **options)
    return call

owner, name, after_s = PHASE
setattr(owner, name, signalled(getattr(owner, name), after_s))
driver_program.main(Path(sys.argv[1]), int(sys.argv[2]))
"""
PHASES = [("(ray, 'init', 0.5)", "planned"), ("(Node, 'kill_all_processes', 0.2)", "done")]
"""Both last a second or more, so the signal comes within them."""


@pytest.mark.parametrize(("phase", "state"), PHASES)
def test_a_signal_while_ray_starts_or_stops_is_not_lost(tmp_path: Path, phase: str, state: str) -> None:
    driver = Driver(tmp_path, "-c", SIGNAL_DURING.replace("PHASE", phase), trials=2)
    summary, errors = driver.end(timeout_s=60)
    assert summary["interrupted"]
    assert "Traceback" not in errors
    assert [row.state for row in rows(tmp_path)] == [state] * 2


def test_after_sigkill_at_random_moments_the_next_run_finishes_and_repeats_nothing(tmp_path: Path) -> None:
    dice = random.Random(20210202)
    for _ in range(2):
        driver = Driver(tmp_path)
        wait_for_starts(tmp_path, driver, 2)
        time.sleep(dice.uniform(0.0, 2.0))
        driver.process.kill()
        driver.process.communicate()
    start_s = time.monotonic()
    summary, _ = Driver(tmp_path).end(timeout_s=120)
    assert time.monotonic() - start_s < 50, "waited for the lease of a driver that is known to be dead"
    assert not summary["interrupted"]
    assert [row.state for row in rows(tmp_path)] == ["done"] * TRIALS
    ends = [line for line in log_lines(tmp_path) if line.startswith("end")]
    assert sorted(ends) == sorted(f"end {seed}" for seed in range(SLOW, SLOW + TRIALS))
