"""One command with output layers that go wrong in every way beside healthy ones: it ends by itself,
and says why."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path
from typing import Any

import pytest
import ray

from tests.support.command import sweep
from tests.support.misbehaving_layer import CONTAINERS

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
    "allocates 50 GB": (
        "failed",
        rf"it ran out of memory \(RuntimeError.*{LINE}.* GB of its machine, alone on its",
    ),
    "forks": ("done", ""),
    "leaves": ("failed", "its process died .*in each of 2 attempts"),
    "holds Python's lock": ("failed", SILENT),
    "is stopped": ("failed", SILENT),
    "sleeps": (
        "failed",
        rf"it stood still for \d+ s in epoch 1, step 3 {LINE} \(in each of 2 attempts",
    ),
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


def run(folder: Path, does: list[str], *options: str) -> tuple[str, dict[str, dict[str, str]]]:
    """What a sweep says over layers that do this, beside a healthy one, and its results by the
    trials' names."""
    study, storage = folder / "misbehaving.py", folder / "results"
    study.write_text(STUDY.format(does=does))
    settings = [f"--set={name}={value}" for name, value in SMALL.items()]
    ran = sweep(study, *settings, *options, "--storage", storage)
    assert ran.returncode == 1, ran.stdout + ran.stderr
    answer = sweep("results", study, *settings, "--storage", storage, "--format", "csv")
    return ran.stdout, {row["name"]: row for row in csv.DictReader(io.StringIO(answer.stdout))}


@pytest.mark.timeout(900)
@pytest.mark.chaos(2, len(CAUSES))
@pytest.mark.usefixtures("one_ray")
def test_whatever_a_layer_does_the_sweep_ends_the_others_finish_and_each_cause_is_named(
    tmp_path: Path, rounds: int
) -> None:
    does = list(CAUSES)[:rounds]
    shown, rows = run(tmp_path, does, "--trial-timeout", "10")
    assert len(rows) == rounds + 1, shown
    for name, row in rows.items():
        state, cause = next((CAUSES[what] for what in does if what in name), ("done", ""))
        said = shown.split(f"{name}: ")[-1].splitlines()[0]
        assert row["state"] == state, f"{name}: {said}"
        assert re.search(cause, said), f"{name}: {said}"
    node: Any = ray._private.worker._global_node
    logs = Path(node.get_session_dir_path(), "logs")
    assert sum(path.stat().st_size for path in logs.rglob("worker-*")) < MOST_OUTPUT_BYTES


@pytest.mark.skipif(
    not os.access(CONTAINERS, os.W_OK), reason="no control groups here that this user may make"
)
@pytest.mark.chaos(0, 1)
@pytest.mark.usefixtures("one_ray")
def test_what_the_kernel_killed_for_want_of_memory_is_tried_once_alone_and_says_so(
    tmp_path: Path,
) -> None:
    try:
        shown, rows = run(tmp_path, ["fills its container"])
    finally:
        for group in CONTAINERS.glob("misbehaving-*"):
            group.rmdir()
    (failed, done) = sorted(rows.values(), key=lambda row: row["state"], reverse=True)
    assert (failed["state"], done["state"]) == ("failed", "done"), shown
    assert re.match(
        r"it ran out of memory .* of the .* GB of its machine, alone on its", failed["cause"]
    )
    assert failed["attempt"] == "2"
