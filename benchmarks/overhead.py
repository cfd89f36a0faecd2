"""Overhead of a trial of a user's own code, next to Ray Tune and Optuna.

`python -m benchmarks.overhead [ROUNDS]` runs 200 trials, each a computation of 50 ms, on two
processes or threads. Each variant runs in a process of its own; they take turns. A trial writes the
times of its start and end, so all variants are measured alike:

- whole: seconds of the process, with Python's, Ray's and the report's time
- per trial: time from the first trial's start to the last one's end, times two, per trial
- ratio: per trial, over plain calls in two processes

Ray Tune's default, a new process per trial, takes 20 trials: 200 would take half of an hour.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from pathlib import Path
from typing import Any

TRIALS, TRIAL_S, AT_ONCE = 200, 0.05, 2
SLOW_TRIALS = 20
ROOT = Path(__file__).parents[1]
TIMES = "OVERHEAD_TIMES"
"""Environment variable: file of the trials' start and end times."""
STUDY = """
from benchmarks.overhead import TRIALS, compute
from search_spaces.study import Lines, Study
from trainables.config import Trainable

class Computation(Trainable):
    number: int = 0

    def train(self, trial):
        return {"result": compute(self.number)}

STUDY = Study(
    name="overhead",
    trials=lambda: [Computation(number=number) for number in range(TRIALS)],
    metric="result",
    analyses=(Lines(x="number"),),
)
"""


def compute(number: int) -> float:
    """Compute for TRIAL_S seconds, and record the times."""
    start_s, steps = time.time(), 0
    while time.time() < start_s + TRIAL_S:
        steps += 1
    with open(os.environ[TIMES], "a") as file:  # noqa: PTH123 - one write of one short line
        file.write(f"{start_s} {time.time()}\n")
    return float(number)


def plain() -> None:
    with get_context("fork").Pool(AT_ONCE) as pool:
        pool.map(compute, range(TRIALS), chunksize=1)


def ours() -> None:
    with tempfile.TemporaryDirectory() as folder:
        (study := Path(folder, "study.py")).write_text(STUDY)
        words = [str(study), "--storage", folder, "--max-concurrent", str(AT_ONCE)]
        subprocess.run([sys.executable, str(ROOT / "sweep.py"), *words], check=True)


def tune(*, trials: int, reuse_actors: bool) -> None:
    import ray
    from ray import tune

    def trainable(config: dict[str, Any]) -> None:
        tune.report({"result": compute(config["number"])})

    ray.init(num_cpus=AT_ONCE, include_dashboard=False, log_to_driver=False)
    with tempfile.TemporaryDirectory() as folder:
        results = tune.Tuner(
            trainable,
            param_space={"number": tune.grid_search(list(range(trials)))},
            tune_config=tune.TuneConfig(reuse_actors=reuse_actors),
            run_config=tune.RunConfig(storage_path=folder, verbose=0),
        ).fit()
        assert len(results) == trials and not results.errors
    ray.shutdown()


def optuna(*, in_sqlite: bool) -> None:
    import optuna

    def objective(trial: optuna.Trial) -> float:
        return compute(trial.suggest_int("number", 0, TRIALS))

    with tempfile.TemporaryDirectory() as folder:
        study = optuna.create_study(
            storage=f"sqlite:///{folder}/optuna.db" if in_sqlite else None,
            sampler=optuna.samplers.RandomSampler(seed=1),
        )
        study.optimize(objective, n_trials=TRIALS, n_jobs=AT_ONCE)


VARIANTS: dict[str, Callable[[], None]] = {
    "plain calls, two processes": plain,
    "this project": ours,
    "Ray Tune, reuse_actors=True": lambda: tune(trials=TRIALS, reuse_actors=True),
    "Ray Tune": lambda: tune(trials=SLOW_TRIALS, reuse_actors=False),
    "Optuna n_jobs=2, SQLite": lambda: optuna(in_sqlite=True),
    "Optuna n_jobs=2, in memory": lambda: optuna(in_sqlite=False),
}


def measured(variant: str) -> tuple[float, float]:
    """Run a variant in a new process; return its seconds as a whole, and per trial."""
    with tempfile.TemporaryDirectory() as folder:
        times = Path(folder, "times")
        environment = {**os.environ, TIMES: str(times), "PYTHONPATH": str(ROOT)}
        words = [sys.executable, "-m", "benchmarks.overhead", "--variant", variant]
        start_s = time.perf_counter()
        done = subprocess.run(
            words, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        whole_s = time.perf_counter() - start_s
        assert done.returncode == 0, done.stdout + done.stderr
        pairs = [[*map(float, line.split())] for line in times.read_text().splitlines()]
    assert len(pairs) in (TRIALS, SLOW_TRIALS)
    span_s = max(end_s for _, end_s in pairs) - min(start_s for start_s, _ in pairs)
    return whole_s, span_s * AT_ONCE / len(pairs)


def main(rounds: int) -> None:
    print(f"{TRIALS} trials of {1000 * TRIAL_S:.0f} ms, {AT_ONCE} at a time")
    seconds: dict[str, list[tuple[float, float]]] = {variant: [] for variant in VARIANTS}
    for turn in range(rounds):
        print(f"round {turn + 1}, load {os.getloadavg()[0]:.1f}")
        for variant, pairs in seconds.items():
            pairs.append(measured(variant))
            whole_s, trial_s = pairs[-1]
            print(f"  {variant}: {whole_s:.1f} s, {1000 * trial_s:.0f} ms per trial", flush=True)
    print("medians: whole, per trial, ratio (lowest to highest)")
    base_s = [trial_s for _, trial_s in seconds[next(iter(VARIANTS))]]
    for variant, pairs in seconds.items():
        whole_s, trial_s = (statistics.median(column) for column in zip(*pairs, strict=True))
        ratios = sorted(pair[1] / base for pair, base in zip(pairs, base_s, strict=True))
        print(
            f"{variant}: {whole_s:.1f} s, {1000 * trial_s:.0f} ms, "
            f"{statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f})"
        )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--variant"]:
        VARIANTS[sys.argv[2]]()
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
