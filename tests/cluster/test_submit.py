"""A sweep that is handed over to the cluster runs on without whoever typed it, and is followed from anywhere."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.command import wait_for
from tests.support.namespaces import Cluster, Machine


def said(machine: Machine, *words: str | Path) -> str:
    """What the command prints that goes well there."""
    answer = machine.sweep(*words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_a_submitted_sweep_runs_on_and_is_stopped_and_reported_from_elsewhere(three: Cluster) -> None:
    _, second, third = three.network.machines
    laptop = three.network.add("laptop")
    store = ("--store", three.store_url)  # all that a machine needs to follow it
    words = ("gss_grid", "--scale", "smoke", "--set", "training.epochs=60", *three.place)

    def count(state: str) -> int:
        [line] = json.loads(said(second, "status", *store, "--format", "json"))
        return int(line[state])

    assert "Submitted as gss_grid-" in said(laptop, "submit", *words, "--address", three.dashboard)
    laptop.kill()
    wait_for(lambda: any(three.storage.glob("trials/*/*/worker")), timeout_s=120, what="a trial of the job")
    assert count("running") > 0
    said(third, "stop", "gss_grid", *store)
    wait_for(lambda: count("running") == 0, timeout_s=120, what="the end of the job")
    assert count("planned") > 0
    said(second, "submit", *words, "--address", three.dashboard)
    wait_for(lambda: count("done") == 4, timeout_s=240, what="four done trials")
    assert "All 4 trials are done." in said(second, "report", "gss_grid", *three.place)
