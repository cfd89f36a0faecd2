"""Speed of a results store with 10,000 done trials, and of its rebuild from trial folders.

    python -m benchmarks.store [STORE_URL]

Default: a SQLite store in a temporary folder. A PostgreSQL database must be empty; it is not
rebuilt. Each step runs in a new process, timed from start to end. "inside" is the time in the
store's methods.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from unittest.mock import patch

import numpy as np

from orchestrator.storage import FolderStorage
from orchestrator.store import PlannedTrial, RunRecord, Store, StudyKey, open_store
from orchestrator.sweep import check_store, rebuild_store, write_study_file
from trainables.config import CorpusConfig, GssConfig, TrialConfig
from trainables.trial_folder import EpochMetrics, TrialOutcome

CS, KS, SEEDS, TRIALS = 40, 25, 10, 10_000
SINGULAR_VALUES = 500
KEY = StudyKey(study="gss_grid", scale="quick", corpus="pydocs")
BOUND_S = 2.0
"""Limit on the seconds of the steps `status` and `replan`."""


def plan() -> list[PlannedTrial]:
    corpus = CorpusConfig(name="pydocs", sha256="0" * 64)
    cs, ks = np.linspace(-2, 2, CS).round(4).tolist(), np.linspace(1.25, 3, KS).round(4).tolist()
    return [
        PlannedTrial.of(
            TrialConfig(seed=seed, corpus=corpus, output_layer=GssConfig(c=c, k=k)),
            f"gss c={c:g} k={k:g} seed={seed}",
        )
        for seed, c, k in product(range(1, SEEDS + 1), cs, ks)
    ]


def fill(store: Store, *, epochs: int, storage: FolderStorage | None = None) -> list[PlannedTrial]:
    """Record every trial in its own transaction, as a driver does, and print the cost."""
    trials, draws = plan(), np.random.default_rng(0)
    start = time.perf_counter()
    store.register(KEY, trials)
    print(f"register {TRIALS:,} new trials: {time.perf_counter() - start:.2f} s")
    run_id = store.begin_run(
        RunRecord(
            code_version="0", packages={}, host="benchmark", device="cpu", corpus_sha256="0" * 64
        )
    )
    start = time.perf_counter()
    store.claim([trial.trial_id for trial in trials], owner="benchmark:1:1", lease_s=36_000)
    print(f"claim {TRIALS:,} trials: {time.perf_counter() - start:.2f} s")
    seconds = 0.0
    for trial in trials:
        spectrum = np.sort(np.abs(draws.normal(size=SINGULAR_VALUES)))[::-1] * 1e3
        outcome = _outcome(trial.trial_id, draws, epochs)
        start = time.perf_counter()
        store.record(outcome, run_id=run_id, spectrum=spectrum)
        seconds += time.perf_counter() - start
        if storage is not None:
            _write_result(storage, outcome, spectrum)
    print(f"record one outcome: {seconds / TRIALS * 1e3:.2f} ms")
    store.end_run(run_id)
    return trials


def _write_result(storage: FolderStorage, outcome: TrialOutcome, spectrum: np.ndarray) -> None:
    folder = storage.trial(outcome.trial_id)
    folder.path.mkdir(parents=True)
    with patch("os.fsync"):
        folder.write_result(outcome, spectrum)


def _outcome(trial_id: str, draws: np.random.Generator, epochs: int) -> TrialOutcome:
    loss, rank = 5 + 0.05 * draws.normal(), int(draws.integers(100, 400))
    perplexity = float(np.exp(loss))
    measurements = {
        "perplexity@1": {
            "train_perplexity": perplexity,
            "valid_perplexity": perplexity + 1,
            "test_perplexity": perplexity + 2,
            "parameters": 1000,
            "seconds": 10.0,
        },
        "spectrum@1": {
            **dict.fromkeys(("press_rank", "effective_rank_1e-3", "rank_rows"), rank),
            **dict.fromkeys(("entropy_rank", "stable_rank", "press_tolerance"), rank / 10),
        },
    }
    return TrialOutcome(
        trial_id=trial_id,
        state="done",
        epochs=tuple(
            EpochMetrics(
                epoch=number,
                tokens=1000 * number,
                train_loss=float(loss + 2 / number),
                valid_loss=float(loss + 2.1 / number + 0.01 * draws.normal()),
                averaging=number > 0.7 * epochs,
                seconds=1.0,
            )
            for number in range(1, epochs + 1)
        ),
        measurements=measurements,
    )


def status(url: str) -> float:
    start = time.perf_counter()
    with open_store(url, check=False) as store:
        (summary,) = store.studies()
    assert summary.counts["done"] == TRIALS
    return time.perf_counter() - start


def replan(url: str) -> float:
    trials = plan()
    start = time.perf_counter()
    with open_store(url) as store:
        store.register(KEY, trials)
        states = store.states([trial.trial_id for trial in trials])
    assert set(states.values()) == {"done"}
    return time.perf_counter() - start


def results(url: str) -> float:
    start = time.perf_counter()
    with open_store(url) as store:
        rows = store.results(KEY)
    assert len(rows[-1]["metrics"]) == 11
    return time.perf_counter() - start


def check(url: str) -> float:
    start = time.perf_counter()
    assert check_store(url, _storage(url)) == []
    return time.perf_counter() - start


def rebuild(url: str) -> float:
    start = time.perf_counter()
    rebuild_store(url, _storage(url), lambda _: None)
    return time.perf_counter() - start


def _storage(url: str) -> FolderStorage:
    return FolderStorage(Path(url).parent)


STEPS: dict[str, Callable[[str], float]] = {
    "status": status,
    "replan": replan,
    "results": results,
    "check": check,
    "rebuild": rebuild,
}
FILE_STEPS = ("check", "rebuild")


def measure(url: str, *, rounds: int = 5) -> None:
    storage = None if "://" in url else _storage(url)
    write_file = None if storage is None else partial(write_study_file, storage)
    with open_store(url, on_register=write_file) as store:
        fill(store, epochs=5, storage=storage)
    print(f"{'step':<10}{'process s':>12}{'inside s':>12}{'bound s':>10}")
    for step in [step for step in STEPS if storage is not None or step not in FILE_STEPS]:
        process_s, inside_s = [], []
        for _ in range(rounds):
            start = time.perf_counter()
            command = [sys.executable, "-m", "benchmarks.store", "--step", step, url]
            process = subprocess.run(command, check=True, capture_output=True, text=True)
            process_s.append(time.perf_counter() - start)
            inside_s.append(float(process.stdout))
        bound = f"{BOUND_S:.1f}" if step in ("status", "replan") else ""
        print(
            f"{step:<10}{statistics.median(process_s):>12.2f}{statistics.median(inside_s):>12.2f}{bound:>10}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("url", nargs="?")
    parser.add_argument(
        "--step", choices=STEPS, help="run one step in this process and print its seconds"
    )
    options = parser.parse_args()
    if options.step is not None:
        print(STEPS[options.step](options.url))
    elif options.url is not None:
        measure(options.url)
    else:
        with tempfile.TemporaryDirectory() as folder:
            measure(str(Path(folder) / "results.db"))


if __name__ == "__main__":
    main()
