from __future__ import annotations

import json
from pathlib import Path

from tests.cluster.namespaces import Cluster, Machine
from tests.support.command import wait_for

SUBMIT = ("-m", "ray.scripts.scripts", "job", "submit", "--no-wait", "--submission-id", "grid")


def printed(machine: Machine, *words: str | Path) -> str:
    answer = machine.sweep(*words)
    assert answer.returncode == 0, answer.stderr
    return answer.stdout


def test_job_outlives_submitting_machine(three: Cluster) -> None:
    _, second, third = three.network.machines
    laptop = three.network.add("laptop")
    store = ("--store", three.store_url)  # the only option needed to follow the job
    words = ("gss_grid", "--scale", "smoke", "--set", "training.epochs=60", *three.options)

    def count(state: str) -> int:
        [line] = json.loads(printed(second, "status", *store, "--format", "json"))["studies"]
        return int(line["counts"][state])

    sweep = ("--", "python", "-m", "sweep", *words, "--address", "auto")
    submitted = laptop.python(*SUBMIT, "--address", three.dashboard, *sweep)
    assert submitted.returncode == 0, submitted.stderr
    laptop.kill()
    wait_for(
        lambda: any(three.storage.glob("trials/*/*/worker")),
        timeout_s=120,
        event="a trial of the job",
    )
    assert count("running") > 0
    printed(third, "stop", "gss_grid", *store)
    wait_for(lambda: count("running") == 0, timeout_s=120, event="the end of the job")
    assert count("planned") > 0
