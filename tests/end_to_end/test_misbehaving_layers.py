from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.end_to_end.misbehaving_layer import CONTAINERS
from tests.support.command import results_table, sweep

SMALL = {
    "training.epochs": 2,
    "training.epoch_tokens": 8000,
    "evaluation.valid_tokens": 2000,
    "evaluation.test_tokens": 2000,
    "corpus.vocabulary_limit": 300,
}
LINE = r"\(misbehaving_layer.py, line \d+\)"
SILENT = ("failed", r"it stalled for \d+ s .*in each of 2 attempts")
CAUSES = {
    "allocates 50 GB": ("failed", rf"it ran out of memory \(RuntimeError.*{LINE}"),
    "forks": ("done", ""),
    "leaves": ("failed", "its process died .*in each of 2 attempts"),
    "holds Python's lock": SILENT,
    "is stopped": SILENT,
    "sleeps": ("failed", rf"it stalled for \d+ s in epoch 1, step 3 {LINE}"),
    "raises": ("failed", f"ValueError: on purpose {LINE}"),
    "exits": ("failed", f"SystemExit: 3 {LINE}"),
    "reads at no address": ("failed", "its process died .*in each of 2 attempts"),
    "prints 100 MB": ("done", ""),
    "returns NaN": ("diverged", "the train loss became nan"),
}
"""For each misbehaviour: the trial's expected state and a pattern of its error message.

`make test` trains only the first few.
"""
STUDY = """from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from tests.end_to_end.misbehaving_layer import MisbehavingSoftmax
from trainables.config import CustomConfig, SoftmaxConfig

def trials(corpus):
    for does in {does}:
        yield awd_lstm(corpus, CustomConfig.of(MisbehavingSoftmax, does=does))
    yield awd_lstm(corpus, SoftmaxConfig())

STUDY = Study(name="misbehaving", trials=trials)
"""
MOST_OUTPUT_BYTES = 50_000_000


def run(folder: Path, does: list[str], *options: str) -> list[dict[str, str]]:
    study, storage = folder / "misbehaving.py", folder / "results"
    study.write_text(STUDY.format(does=does))
    settings = [f"--set={name}={value}" for name, value in SMALL.items()]
    ran = sweep(study, *settings, *options, "--storage", storage)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    return results_table(storage, str(study), *settings)


@pytest.mark.timeout(900)
@pytest.mark.chaos(2, len(CAUSES))
@pytest.mark.usefixtures("one_ray")
def test_sweep_survives_misbehaving_layers(tmp_path: Path, rounds: int) -> None:
    does = list(CAUSES)[:rounds]
    rows = run(tmp_path, does, "--trial-timeout", "10", "--max-concurrent", "1")
    assert len(rows) == rounds + 1
    for row in rows:
        state, cause = next((CAUSES[way] for way in does if way in row["name"]), ("done", ""))
        assert row["state"] == state and re.search(cause, row["cause"]), row
    node: Any = ray._private.worker._global_node
    logs = Path(node.get_session_dir_path(), "logs")
    assert sum(path.stat().st_size for path in logs.rglob("worker-*")) < MOST_OUTPUT_BYTES


@pytest.mark.skipif(
    not os.access(CONTAINERS, os.W_OK), reason="this user cannot create control groups"
)
@pytest.mark.chaos(0, 1)
@pytest.mark.usefixtures("one_ray")
def test_oom_killed_trial_is_retried_alone(tmp_path: Path) -> None:
    try:
        rows = run(tmp_path, ["fills its container"])
    finally:
        for group in CONTAINERS.glob("misbehaving-*"):
            group.rmdir()
    failed, done = sorted(rows, key=lambda row: row["state"], reverse=True)
    assert (failed["state"], done["state"]) == ("failed", "done")
    assert re.match("it ran out of memory .* alone", failed["cause"])
