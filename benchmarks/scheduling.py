"""Overhead of scheduling and recording, with trials that do nothing.

`python -m benchmarks.scheduling [TRIALS]` prints seconds per trial, with and without Ray's start,
and the driver's memory. Limit: 0.05 s per trial for 1,000 trials.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import ray

from orchestrator.cluster import RunOptions
from orchestrator.schedule import StudyWork, run_trials
from orchestrator.storage import FolderStorage
from orchestrator.store import PlannedTrial, RunRecord, StudyKey, open_store
from orchestrator.worker import TrialFunctions
from trainables.config import CorpusConfig, SoftmaxConfig, TrialConfig
from trainables.trial_folder import TrialOutcome

LIMIT_S = 0.05


def do_nothing(config: TrialConfig, **_: Any) -> TrialOutcome:
    return TrialOutcome(
        trial_id=config.trial_id, state="done", measurements={"nothing@1": {"number": config.seed}}
    )


def plan_trials(trials: int) -> list[PlannedTrial]:
    corpus = CorpusConfig(name="none", sha256="0" * 64)
    configs = [
        TrialConfig(seed=seed, corpus=corpus, output_layer=SoftmaxConfig())
        for seed in range(trials)
    ]
    return [PlannedTrial.of(config, f"seed={config.seed}") for config in configs]


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(trials: int) -> None:
    plan = plan_trials(trials)
    with (
        tempfile.TemporaryDirectory() as folder,
        open_store(f"sqlite:///{folder}/results.db") as store,
    ):
        study = StudyKey(study="nothing", scale="smoke", corpus="none")
        store.register(study, plan)
        run = RunRecord(
            code_version="-", packages={}, host="-", device="cpu", corpus_sha256="0" * 64
        )
        work = StudyWork(
            store=store,
            run_id=store.begin_run(run),
            options=RunOptions(storage=FolderStorage(Path(folder))),
            seconds_per_trial=0.001,
            study=study,
            functions=TrialFunctions(run_trial=do_nothing),
        )
        start_s = time.perf_counter()
        warm_up = plan[: min(8, trials // 2)]
        run_trials(warm_up, work)
        first_s, before_mib = time.perf_counter() - start_s, peak_mib()
        start_s = time.perf_counter()
        trials_left = plan[len(warm_up) :]
        run_trials(trials_left, work)
        trials_s = time.perf_counter() - start_s
        states = store.states([trial.trial_id for trial in plan])
    assert set(states.values()) == {"done"}, states
    per_trial_s = trials_s / len(trials_left)
    print(f"{len(warm_up)} trials, Ray's first start and stop included: {first_s:.1f} s")
    print(
        f"{len(trials_left)} trials, Ray's start and stop included: {trials_s:.1f} s, "
        f"{per_trial_s:.4f} s per trial "
        f"(limit {LIMIT_S} s: {'met' if per_trial_s <= LIMIT_S else 'EXCEEDED'})"
    )
    print(
        f"the driver's peak memory grew by {peak_mib() - before_mib:.0f} MiB to {peak_mib():.0f} "
        f"MiB"
    )
    print(f"ray {ray.__version__}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
