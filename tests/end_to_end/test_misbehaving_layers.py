"""One command with output layers that go wrong in every way beside healthy ones: it ends by itself, and says why."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.support.command import sweep

SMALL = {
    "training.epochs": 2,
    "training.epoch_tokens": 8000,
    "evaluation.valid_tokens": 2000,
    "evaluation.test_tokens": 2000,
    "corpus.vocabulary_limit": 300,
}
SILENT = r"it stood still for \d+ s \(no thread of its process ran any more; last seen .*in each of 2 attempts"
LINE = r"\(misbehaving_layer.py, line \d+\)"
CAUSES = {
    "allocates 50 GB": ("failed", rf"it ran out of memory \(RuntimeError.*{LINE}.* GB of its machine, alone on its"),
    "forks": ("done", ""),
    "leaves": ("failed", "its process died .*in each of 2 attempts"),
    "holds Python's lock": ("failed", SILENT),
    "is stopped": ("failed", SILENT),
    "sleeps": ("failed", rf"it stood still for \d+ s in epoch 1, step 3 {LINE} \(in each of 2 attempts"),
    "raises": ("failed", f"ValueError: on purpose {LINE}"),
    "exits": ("failed", f"SystemExit: 3 {LINE}"),
    "reads at no address": ("failed", "its process died .*in each of 2 attempts"),
    "prints 100 MB": ("done", ""),
    "returns NaN": ("diverged", "the train loss became nan"),
}
"""What becomes of the trial, and its cause; those first that `make test` has time for."""
STUDY = '''"""Healthy trials between others."""
from search_spaces.awd_lstm import awd_lstm
from search_spaces.study import Study
from tests.support.misbehaving_layer import MisbehavingSoftmax
from trainables.config import CustomConfig, SoftmaxConfig


def trials(corpus):
    for does in {does}:
        yield awd_lstm(corpus, CustomConfig.of(MisbehavingSoftmax, does=does))
    yield awd_lstm(corpus, SoftmaxConfig())


STUDY = Study(name="misbehaving", trials=trials)
'''
MOST_OUTPUT_BYTES = 50_000_000


@pytest.mark.timeout(900)
@pytest.mark.chaos(2, len(CAUSES))
@pytest.mark.usefixtures("one_ray")
def test_whatever_a_layer_does_the_sweep_ends_the_others_finish_and_each_cause_is_named(
    tmp_path: Path, rounds: int
) -> None:
    does, study, storage = list(CAUSES)[:rounds], tmp_path / "misbehaving.py", tmp_path / "results"
    study.write_text(STUDY.format(does=does))
    settings = [f"--set={name}={value}" for name, value in SMALL.items()]
    ran = sweep(study, *settings, "--trial-timeout", "10", "--storage", storage)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    answer = sweep("results", study, *settings, "--storage", storage, "--format", "csv")
    rows = {row["name"]: row for row in csv.DictReader(io.StringIO(answer.stdout))}
    assert len(rows) == rounds + 1, ran.stdout
    for name, row in rows.items():
        state, cause = next((CAUSES[what] for what in does if what in name), ("done", ""))
        said = ran.stdout.split(f"{name}: ")[-1].splitlines()[0]
        assert row["state"] == state, f"{name}: {said}"
        assert re.search(cause, said), f"{name}: {said}"
    node: Any = ray._private.worker._global_node
    logs = Path(node.get_session_dir_path(), "logs")
    assert sum(path.stat().st_size for path in logs.rglob("worker-*")) < MOST_OUTPUT_BYTES
