"""A cluster with GPUs of two sizes: real Ray machines, whose GPUs Ray only counts."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray
from ray.cluster_utils import Cluster

from orchestrator import schedule
from orchestrator.cluster import SETTINGS
from orchestrator.estimates import estimate
from orchestrator.execution import ScheduleOptions
from orchestrator.lease import this_owner
from orchestrator.progress import Silent
from orchestrator.store.opening import open_store
from orchestrator.store.records import PlannedTrial, RunRecord, StudyKey
from tests.orchestrator.scripted_trials import log_lines, run_where
from trainables.config import CorpusConfig, MosConfig, SoftmaxConfig, TrialConfig
from trainables.corpora import CorpusIdentity
from trainables.runtime import Runtime

CORPUS = CorpusIdentity(
    name="none", sha256="0" * 64, train_tokens=10**6, valid_tokens=10**5, test_tokens=10**5, vocabulary_size=10_000
)
CONFIGS = [
    TrialConfig(seed=seed, corpus=CorpusConfig(name="none", sha256="0" * 64), output_layer=layer)
    for layer in (MosConfig(), SoftmaxConfig())
    for seed in range(4)
]
KEY = StudyKey(study="placed", scale="smoke", corpus="none")


@pytest.fixture
def machines() -> Iterator[tuple[str, str]]:
    """Ray's ids of two machines with a GPU each."""
    os.environ.update(SETTINGS)
    machine = {"num_cpus": 2, "num_gpus": 1}
    cluster: Any = Cluster(initialize_head=True, head_node_args={**machine, "include_dashboard": False})
    try:
        second = cluster.add_node(**machine)
        ray.init(address=cluster.address, log_to_driver=False)
        yield cluster.head_node.node_id, second.node_id
    finally:
        ray.shutdown()
        cluster.shutdown()


def test_large_trials_run_on_the_large_gpu_alone_and_the_others_wherever_there_is_room(
    machines: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    large, small = machines
    needs = [estimate(CONFIGS[place], CORPUS).gpu_memory_gb for place in (0, -1)]
    assert needs[0] > needs[1]
    monkeypatch.setattr(schedule, "check_machines", lambda *_: {large: needs[0], small: needs[1]})
    plan = [
        PlannedTrial(trial_id=each.trial_id, name=each.trial_id, config=each.model_dump(mode="json"))
        for each in CONFIGS
    ]
    options = ScheduleOptions(
        storage=tmp_path, runtime=Runtime(), measurements=(), seconds_per_trial=60, corpus=CORPUS, gpus_per_trial=1
    )
    with open_store(f"sqlite:///{tmp_path}/results.db") as store:
        store.register(KEY, plan)
        record = RunRecord(code_version="-", packages={}, host="-", device="-", corpus_sha256="0" * 64)
        schedule.run_trials(
            plan,
            store=store,
            run_id=store.begin_run(record),
            owner=this_owner(),
            options=options,
            listener=Silent(),
            run_trial=run_where,
        )
        assert {(row.state, row.cause) for row in store.trials(KEY)} == {("done", None)}
    places = [tuple(line.split()) for line in log_lines(tmp_path)]
    assert places.count(("MosConfig", large)) == 4
    assert places.count(("MosConfig", small)) == 0
    assert places.count(("SoftmaxConfig", small)) >= 1
