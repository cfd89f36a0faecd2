"""Machines that are cut off, killed or late: nothing is lost, and the results are those of an undisturbed run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from orchestrator.store.opening import open_store
from orchestrator.store.records import TrialRow
from tests.support.drivers import KEY
from tests.support.namespaces import Cluster, Machine
from tests.support.scripted_trials import LONG, SLOW, STEPS, log_lines, planned

DRIVER = """
import json, sys
from pathlib import Path
from tests.support.drivers import train
storage, store_url, address, first, end = sys.argv[1:]
seeds, options = range(int(first), int(end)), {"address": address}
say = lambda said: print(json.dumps(said))
train(say, Path(storage), seeds, store_url=store_url, seconds_per_trial=60, options=options)
"""


def drive(cluster: Cluster, seeds: range) -> subprocess.Popen[str]:
    """Start the driver on the head."""
    words = (cluster.storage, cluster.store_url, cluster.address, str(seeds.start), str(seeds.stop))
    return cluster.head.popen(sys.executable, "-c", DRIVER, *words)


def end(driver: subprocess.Popen[str], timeout_s: float = 200) -> dict[str, Any]:
    """Its summary."""
    try:
        out, err = driver.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        driver.kill()
        raise AssertionError(driver.communicate()) from None
    assert driver.returncode == 0, err
    summary: dict[str, Any] = json.loads(out)
    return summary


def wait(condition: Callable[[], bool], driver: subprocess.Popen[str], timeout_s: float = 90) -> None:
    """Return once the condition holds."""
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert driver.poll() is None, driver.communicate()
        assert time.monotonic() < deadline_s, "waited in vain"
        time.sleep(0.1)


def rows(cluster: Cluster) -> list[TrialRow]:
    with open_store(cluster.store_url_from_outside, create=False) as store:
        return store.trials(KEY)


def running_on(cluster: Cluster, machine: Machine) -> bool:
    """Whether a worker is busy on the machine with a trial that has begun; it has the trial's name then."""
    processes = machine.run("ps", "-eo", "args").stdout
    return "ray::seed=" in processes and len(log_lines(cluster.storage)) >= 3


def assert_all_done(cluster: Cluster, trials: int) -> None:
    """Every trial is done, with its metrics, and ended exactly once."""
    found = rows(cluster)
    assert Counter(row.state for row in found) == {"done": trials}, [(row.name, row.cause) for row in found]
    with open_store(cluster.store_url_from_outside, create=False) as store:
        assert [row["metrics"] for row in store.results(KEY)] == [{"count": STEPS}] * trials
        assert all(len(store.epochs(row.trial_id)) == STEPS for row in found)
    ends = Counter(line for line in log_lines(cluster.storage) if line.startswith("end"))
    assert set(ends.values()) == {1}
    assert len(ends) == trials


def test_a_machine_that_is_cut_off_and_one_that_dies_lose_nothing(three: Cluster) -> None:
    _, second, third = three.network.machines
    driver = drive(three, range(LONG, LONG + 8))
    wait(lambda: running_on(three, second) and running_on(three, third), driver)
    third.kill()
    three.network.cut(second)
    summary = end(driver)
    assert not summary["interrupted"]
    assert_all_done(three, 8)
    again = [note for note in summary["notes"] if "its machine left the cluster; it goes on" in note]
    assert again, summary["notes"]
    resumed = [line for line in log_lines(three.storage) if line.startswith("start") and not line.endswith(" 0")]
    assert resumed, "no trial went on from its checkpoint"


def test_a_machine_that_joins_late_gets_work(three: Cluster) -> None:
    driver = drive(three, range(LONG, LONG + 10))
    wait(lambda: len(log_lines(three.storage)) >= 3, driver)
    late = three.join("late")
    wait(lambda: running_on(three, late), driver)
    summary = end(driver)
    assert any("at a time, 4 trials fit now, 3 before" in note for note in summary["notes"]), summary
    assert_all_done(three, 10)


def test_a_trial_that_is_asked_to_stop_stops_and_trials_that_are_added_run(three: Cluster) -> None:
    plan = planned(range(LONG, LONG + 6))
    driver = drive(three, range(LONG, LONG + 4))
    wait(lambda: len(log_lines(three.storage)) >= 2, driver)
    first = log_lines(three.storage)[0].split()[1]
    stopped = next(trial for trial in plan if trial.name == f"seed={first}")
    with open_store(three.store_url_from_outside, create=False) as store:
        store.ask_to_stop(stopped.trial_id)
        store.register(KEY, plan)
    summary = end(driver)
    states = {row.name: row.state for row in rows(three)}
    assert states == {trial.name: "planned" if trial == stopped else "done" for trial in plan}
    assert summary["added"] == 2
    assert not end(drive(three, range(LONG, LONG + 6)))["interrupted"]
    assert_all_done(three, 6)


def test_a_whole_sweep_that_is_asked_to_stop_ends_as_by_ctrl_c_and_goes_on_later(three: Cluster) -> None:
    driver = drive(three, range(SLOW, SLOW + 12))
    wait(lambda: len(log_lines(three.storage)) >= 2, driver)
    with open_store(three.store_url_from_outside, create=False) as store:
        store.ask_to_stop(KEY)
    assert end(driver)["interrupted"]
    states = Counter(row.state for row in rows(three))
    assert states.keys() <= {"done", "planned"}
    assert states["planned"]
    assert not end(drive(three, range(SLOW, SLOW + 12)))["interrupted"]
    assert_all_done(three, 12)
