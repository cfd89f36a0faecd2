"""Tests with several Ray nodes on one host, which declare different amounts of memory."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from ray._private import ray_constants
from ray.cluster_utils import Cluster

from orchestrator.forecast import estimate
from orchestrator.schedule import run_trials
from orchestrator.store import PlannedTrial, StudyKey, open_store
from orchestrator.worker import TrialFunctions
from tests.support.notes import RecordingListener
from tests.support.processes import Process, Report
from tests.support.scripted_trials import HELD, log_lines, run_where, work_in
from trainables.config import CorpusConfig, MosConfig, TrialConfig
from trainables.corpora import PUBLISHED_CORPORA

CORPUS = replace(PUBLISHED_CORPORA["ptb"], name="none")
KEY = StudyKey(study="placed", scale="smoke", corpus="none")
WENT = "Machines joined or left. Trials at a time: now 1, before 2."


def held_trials(count: int) -> list[TrialConfig]:
    corpus = CorpusConfig(name="none", sha256="0" * 64)
    return [
        TrialConfig(seed=seed, corpus=corpus, output_layer=MosConfig())
        for seed in range(HELD, HELD + count)
    ]


@contextmanager
def cluster() -> Iterator[Any]:
    # In test processes Ray listens only on loopback, which other machines cannot reach.
    vars(ray_constants)["ENABLE_RAY_CLUSTER"] = True
    os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "1"
    # Notice a dead machine sooner, but do not take a slow one for dead.
    looks = {"health_check_period_ms": 300}
    head = {"num_cpus": 1, "memory": 10**9, "include_dashboard": False, "_system_config": looks}
    nodes: Any = Cluster(initialize_head=True, head_node_args=head)
    try:
        ray.init(address=nodes.address, log_to_driver=False)
        yield nodes
    finally:
        ray.shutdown()
        nodes.shutdown()


class ChangesMachines(RecordingListener):
    """A listener that changes the cluster during a sweep.

    After the first start it removes the large machine. When the sweep notes this, a machine with
    another torch version joins. When the sweep refuses that machine, waiting trials may end.
    """

    def __init__(self, cluster: Any, large: Any, folder: Path) -> None:
        super().__init__()
        self._cluster, self._large, self._folder = cluster, large, folder
        self.late: list[subprocess.Popen[bytes]] = []

    def started(self, trial_id: str, name: str, epoch_count: int | None) -> None:
        if not self.starts:
            self._cluster.remove_node(self._large, allow_graceful=False)
        super().started(trial_id, name, epoch_count)

    def note(self, text: str) -> None:
        super().note(text)
        if WENT in text:
            self._join()
        if "torch" in text:
            (self._folder / "go-on").touch()

    def _join(self) -> None:
        fake = self._folder / "packages" / "torch-0.0.1.dist-info"
        fake.mkdir(parents=True)
        (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 0.0.1\n")
        path = f"{fake.parent}:{os.environ.get('PYTHONPATH', '')}"
        joins = [sys.executable, "-m", "ray.scripts.scripts", "start", "--num-cpus=3", "--block"]
        command = [*joins, f"--address={self._cluster.address}"]
        self.late.append(subprocess.Popen(command, env=os.environ | {"PYTHONPATH": path}))


def sweep_while_machines_change(report: Report, folder: Path) -> None:
    plan = [PlannedTrial.of(config, "-") for config in held_trials(3)]
    with cluster() as nodes, open_store(f"sqlite:///{folder}/results.db") as store:
        large = nodes.add_node(num_cpus=1, memory=10**10)
        listener = ChangesMachines(nodes, large, folder)
        store.register(KEY, plan)
        functions = TrialFunctions(run_trial=run_where)
        fields = {"corpus": CORPUS, "listener": listener, "functions": functions}
        try:
            run_trials(plan, work_in(folder, store, {"address": "auto"}, **fields))
        finally:
            for process in listener.late:
                process.terminate()
                process.wait()
        assert {(row.state, row.cause) for row in store.trials(KEY)} == {("done", None)}
        machines = (nodes.head_node.node_id, large.node_id)
    report((machines, [line.split()[1] for line in log_lines(folder)], listener.notes))


@pytest.mark.chaos(0, 1)
def test_waiting_trials_run_when_possible(tmp_path: Path) -> None:
    assert estimate(held_trials(1)[0], CORPUS).memory_gb > 1
    ((machines, hosts, notes),) = Process(tmp_path, sweep_while_machines_change, tmp_path).end()
    small, large = machines
    assert hosts == [large, small, small, small]
    assert WENT in notes
    (refusal,) = (note for note in notes if "torch 0.0.1" in note)
    assert "but the driver has torch" in refusal
