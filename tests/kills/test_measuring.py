"""Drivers that are stopped or killed while they measure: what was measured stays, and nothing is measured twice."""

from __future__ import annotations

import os
import random
import signal
import time
from collections import Counter
from pathlib import Path

import pytest

from orchestrator.store.opening import open_store
from tests.support.driver_process import TRIALS, Driver, count, wait_for_starts
from tests.support.scripted_measurements import KEY, NAMES
from tests.support.scripted_trials import log_lines

PROGRAM = ("-m", "tests.support.measuring_program")


def recorded(folder: Path) -> int:
    """How many measurements the store has."""
    with open_store(f"sqlite:///{folder}/results.db") as store:
        return sum(len(row["metrics"]) for row in store.results(KEY))


@pytest.mark.parametrize("whole_group", [False, True], ids=["SIGTERM", "Ctrl-C in a terminal"])
def test_a_signal_ends_the_measuring_within_ten_seconds_and_keeps_what_is_done(
    tmp_path: Path, whole_group: bool
) -> None:
    driver = Driver(tmp_path, *PROGRAM)
    wait_for_starts(tmp_path, driver, 5)
    start_s = time.monotonic()
    if whole_group:
        os.killpg(driver.process.pid, signal.SIGINT)
    else:
        driver.process.send_signal(signal.SIGTERM)
    summary, errors = driver.end(timeout_s=20)
    assert time.monotonic() - start_s < 10
    assert summary["interrupted"]
    assert "Traceback" not in errors
    assert 0 < recorded(tmp_path) < TRIALS * len(NAMES)
    # A file may be there whose line in the log its worker did not live to write.
    assert recorded(tmp_path) >= count(tmp_path, "end")


def test_after_sigkill_at_random_moments_the_next_run_completes_and_repeats_nothing(tmp_path: Path) -> None:
    dice = random.Random(20210202)
    for _ in range(2):
        driver = Driver(tmp_path, *PROGRAM)
        wait_for_starts(tmp_path, driver, 2)
        time.sleep(dice.uniform(0.0, 2.0))
        driver.process.kill()
        driver.process.communicate()
    before = count(tmp_path, "end")
    assert 0 < before < TRIALS * len(NAMES)
    summary, _ = Driver(tmp_path, *PROGRAM).end(timeout_s=120)
    assert not summary["interrupted"]
    assert recorded(tmp_path) == TRIALS * len(NAMES)
    ends = Counter(line for line in log_lines(tmp_path) if line.startswith("end"))
    assert len(ends) >= TRIALS * len(NAMES) - 2 * 2, "but for files whose worker died before it wrote the line"
    assert set(ends.values()) == {1}
