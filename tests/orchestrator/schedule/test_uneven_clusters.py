"""Clusters whose machines are not alike: real Ray machines, whose memory Ray only counts."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import ray
from ray._private import ray_constants
from ray.cluster_utils import Cluster

from orchestrator.forecast import estimate
from orchestrator.schedule.trials_run import run_trials
from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from orchestrator.worker import TrialFunctions
from tests.support.notes import Heard
from tests.support.one_ray import end_ray
from tests.support.scripted_trials import HELD, log_lines, run_where, work_in
from trainables.config import CorpusConfig, MosConfig, SoftmaxConfig, TrialConfig
from trainables.config.output_layer import OutputLayerConfig
from trainables.corpora import PUBLISHED_CORPORA

CORPUS = replace(PUBLISHED_CORPORA["ptb"], name="none")
KEY = StudyKey(study="placed", scale="smoke", corpus="none")


def configs(layer: OutputLayerConfig, count: int) -> list[TrialConfig]:
    """Of trials that are held."""
    corpus = CorpusConfig(name="none", sha256="0" * 64)
    return [
        TrialConfig(seed=seed, corpus=corpus, output_layer=layer)
        for seed in range(HELD, HELD + count)
    ]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A cluster that this process is connected to; its head has one core and little memory."""
    end_ray()
    head = {"num_cpus": 1, "memory": 10**9, "include_dashboard": False}
    with pytest.MonkeyPatch.context() as patch:
        # In this process Ray listens on loopback alone, where other machines do not reach it.
        patch.setattr(ray_constants, "ENABLE_RAY_CLUSTER", True)
        patch.setenv("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "1")
        made: Any = Cluster(initialize_head=True, head_node_args=head)
        try:
            ray.init(address=made.address, log_to_driver=False)
            yield made
        finally:
            ray.shutdown()
            made.shutdown()


class GoesOnAfter(Heard):
    """Lets held trials go on once something was said."""

    def __init__(self, words: str, folder: Path) -> None:
        super().__init__()
        self._words, self._go_on = words, folder / "go-on"

    def note(self, text: str) -> None:
        super().note(text)
        if self._words in text:
            self._go_on.touch()


def run(
    plan: Sequence[TrialConfig], store: Store, folder: Path, *, held_until: str, **options: Any
) -> tuple[list[list[str]], list[str]]:
    """Run the trials to their ends; the output layer and machine of each start, and what was
    said."""
    trials = [PlannedTrial.of(config, "-") for config in plan]
    heard = GoesOnAfter(held_until, folder)
    store.register(KEY, trials)
    functions = TrialFunctions(run_trial=run_where)
    run_trials(
        trials, work_in(folder, store, options, corpus=CORPUS, listener=heard, functions=functions)
    )
    assert {(row.state, row.cause) for row in store.trials(KEY)} == {("done", None)}
    return [line.split() for line in log_lines(folder)], heard.notes


@contextmanager
def once_it_runs(folder: Path, action: Callable[[], object]) -> Iterator[None]:
    """Do something when the first trial has started."""

    def wait_and_act() -> None:
        deadline_s = time.monotonic() + 60
        while not log_lines(folder) and time.monotonic() < deadline_s:
            time.sleep(0.1)
        action()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    try:
        yield
    finally:
        thread.join()


def test_waiting_trials_run_on_a_smaller_machine(
    cluster: Any, store: Store, tmp_path: Path
) -> None:
    plan = configs(MosConfig(), 3)
    assert estimate(plan[0], CORPUS).memory_gb > 1
    small, large = cluster.head_node.node_id, cluster.add_node(num_cpus=1, memory=10**10)
    large_id = large.node_id
    went = "Machines came or went: at a time, 1 trials fit now, 2 before."
    with once_it_runs(tmp_path, lambda: cluster.remove_node(large, allow_graceful=False)):
        places, notes = run(plan, store, tmp_path, held_until=went)
    assert places[0] == ["MosConfig", large_id]
    assert [place for _, place in places[1:]] == [small] * 3
    assert went in notes


def test_unfit_machine_that_joins_gets_nothing(cluster: Any, store: Store, tmp_path: Path) -> None:
    fake = tmp_path / "packages" / "torch-0.0.1.dist-info"
    fake.mkdir(parents=True)
    (fake / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 0.0.1\n")
    path = f"{fake.parent}:{os.environ.get('PYTHONPATH', '')}"
    joins = [
        sys.executable,
        "-m",
        "ray.scripts.scripts",
        "start",
        f"--address={cluster.address}",
        "--num-cpus=3",
    ]
    late: list[subprocess.Popen[bytes]] = []

    def join() -> None:
        late.append(subprocess.Popen([*joins, "--block"], env=os.environ | {"PYTHONPATH": path}))

    try:
        with once_it_runs(tmp_path, join):
            places, notes = run(
                configs(SoftmaxConfig(), 6), store, tmp_path, held_until="torch", address="auto"
            )
    finally:
        late[0].terminate()
        late[0].wait()
    assert places == [["SoftmaxConfig", cluster.head_node.node_id]] * 6
    (refusal,) = (note for note in notes if "torch 0.0.1" in note)
    assert "where the driver has torch" in refusal
