from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from typing import Any

from orchestrator.store.opening import open_store
from tests.cluster.namespaces import Cluster
from tests.support.command import wait_for
from tests.support.drivers import KEY
from tests.support.scripted_trials import LONG, STEPS, log_lines, planned

DRIVER = """
import json, sys
from pathlib import Path
from tests.support.drivers import train
storage, store_url, address, first, end = sys.argv[1:]
seeds, options = range(int(first), int(end)), {"address": address}
report = lambda value: print(json.dumps(value))
train(report, Path(storage), seeds, store_url=store_url, seconds_per_trial=60, options=options)
"""


def drive(cluster: Cluster, seeds: range) -> subprocess.Popen[str]:
    words = (cluster.storage, cluster.store_url, cluster.address, str(seeds.start), str(seeds.stop))
    return cluster.head.popen(sys.executable, "-c", DRIVER, *words)


def end(driver: subprocess.Popen[str]) -> dict[str, Any]:
    out, err = driver.communicate(timeout=200)
    assert driver.returncode == 0, err
    return dict(json.loads(out))


def test_late_machine_gets_work(three: Cluster) -> None:
    seeds = range(LONG, LONG + 24)
    plan = planned(seeds)
    with open_store(three.store_url_from_outside) as store:
        driver = drive(three, seeds)
        wait_for(lambda: len(log_lines(three.storage)) >= 3, timeout_s=90, event="three trials")
        late = three.join("late")
        # Ray names a busy worker after its trial.
        wait_for(
            lambda: "ray::seed=" in late.run("ps", "-eo", "args").stdout,
            timeout_s=90,
            event="a trial there",
        )
        latest = log_lines(three.storage)[-1].split()[1]
        stopped = next(trial for trial in plan if trial.name == f"seed={latest}")
        store.ask_to_stop(stopped.trial_id)
        summary = end(driver)
        states = {row.name: row.state for row in store.trials(KEY)}
        assert states == {trial.name: "planned" if trial == stopped else "done" for trial in plan}
        assert any("at a time: now 4, before 3" in note for note in summary["notes"]), summary
        assert not end(drive(three, seeds))["interrupted"]
        rows = store.results(KEY)
        assert [(row["state"], row["metrics"]) for row in rows] == [
            ("done", {"count": STEPS})
        ] * len(seeds)
        assert all(len(store.epochs(row["trial_id"])) == STEPS for row in rows)
    ends = Counter(line for line in log_lines(three.storage) if line.startswith("end"))
    assert sorted(ends.values()) == [1] * len(seeds)
