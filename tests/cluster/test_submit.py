"""A sweep that is handed over to the cluster runs on without whoever typed it, and is followed from anywhere."""

from __future__ import annotations

import json
import time
from typing import Any

from tests.support.namespaces import Cluster


def status(three: Cluster, *place: object) -> dict[str, Any]:
    """The line of the study, as a machine sees it that has nothing but the store's address."""
    answer = three.network.machines[1].sweep("status", *map(str, place), "--format", "json")
    assert answer.returncode == 0, answer.stderr
    [line] = json.loads(answer.stdout)
    return dict(line)


def test_a_submitted_sweep_runs_on_and_is_stopped_and_reported_from_elsewhere(three: Cluster) -> None:
    laptop = three.network.add("laptop")
    storage, store = ("--storage", three.storage), ("--store", three.store_url)
    words = ("gss_grid", "--scale", "smoke", "--set", "training.epochs=60", *storage, *store)
    handed = laptop.sweep("submit", *words, "--address", three.dashboard)
    assert handed.returncode == 0, handed.stderr
    assert "Submitted as gss_grid-" in handed.stdout
    laptop.kill()
    deadline_s = time.monotonic() + 120
    while not any(three.storage.glob("trials/*/*/worker")):
        assert time.monotonic() < deadline_s, "the job began no trial"
        time.sleep(0.5)
    assert status(three, *store)["running"] > 0
    stopped = three.network.machines[2].sweep("stop", "gss_grid", *store)
    assert stopped.returncode == 0, stopped.stderr
    while status(three, *store)["running"]:
        assert time.monotonic() < deadline_s, "the job did not stop"
        time.sleep(0.5)
    assert status(three, *store)["planned"] > 0
    again = three.network.machines[1].sweep("submit", *words, "--address", three.dashboard)
    assert again.returncode == 0, again.stderr
    deadline_s = time.monotonic() + 240
    while status(three, *store)["done"] < 4:
        assert time.monotonic() < deadline_s, status(three, *store)
        time.sleep(0.5)
    report = three.network.machines[1].sweep("report", "gss_grid", *storage, *store)
    assert report.returncode == 0, report.stderr
    assert "All 4 trials are done." in report.stdout
