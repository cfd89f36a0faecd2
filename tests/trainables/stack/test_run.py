from __future__ import annotations

import dataclasses
import gc
import time
import weakref
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.smoke_trials import FILES, names_in, smoke_trial
from trainables.config import (
    MocConfig,
    MosConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
    TrialConfig,
)
from trainables.runtime import Runtime
from trainables.stack import Stack, run, run_stack
from trainables.training import Trainer
from trainables.trial import TrialTask, run_trial
from trainables.trial_folder import Checkpoints, Epoch, TrialFolder, TrialOutcome, checkpoint

RUNTIME = Runtime()
EVERY_STEP = Runtime(checkpoint_every_s=0.0)
"""Saves a checkpoint at every step, which takes most of a test's time."""
LAYERS: tuple[OutputLayerConfig, ...] = (
    SoftmaxConfig(),
    SigSoftmaxConfig(),
    MosConfig(mixtures=2),
    MocConfig(mixtures=2),
)
"""Layers without piecewise linear functions.

In float32, rounding can move a logit to the next linear piece. `test_stack` compares piecewise
linear layers in float64.
"""


SMALL = smoke_trial(
    **{
        "training.epoch_tokens": 2_000,
        "evaluation.valid_tokens": 1_000,
        "evaluation.test_tokens": 1_000,
    }
)
CONFIGS: dict[str, TrialConfig] = {
    "gss": SMALL,
    "short": SMALL.with_values({"training.epochs": 1}),
    "diverges": SMALL.with_values(
        {"training.learning_rate": 1e5, "training.gradient_clip_norm": 1e9}
    ),
}
CONFIGS |= {
    layer.name: SMALL.model_copy(update={"output_layer": layer, "seed": seed})
    for seed, layer in enumerate(LAYERS, start=1)
}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TrialOutcome]:
    folder = tmp_path_factory.mktemp("alone")
    return {
        name: run_trial(config, directory=folder / name, runtime=RUNTIME)
        for name, config in CONFIGS.items()
    }


def tasks(folder: Path, names: Iterable[str]) -> list[TrialTask]:
    return [TrialTask(CONFIGS[name], folder / name) for name in names]


def outcomes(
    ended: Iterable[tuple[TrialTask, TrialOutcome | Exception]],
) -> dict[str, TrialOutcome]:
    results = {}
    for task, outcome in ended:
        assert isinstance(outcome, TrialOutcome), outcome
        results[task.directory.name] = outcome
    return results


def fail(_: Epoch) -> None:
    raise ValueError("on purpose")


def assert_same(outcome: TrialOutcome, expected: TrialOutcome) -> None:
    """Compare two outcomes as closely as float32 allows.

    A stack adds numbers in another order, which changes last digits, and training amplifies this.
    """
    assert (outcome.trial_id, outcome.state) == (expected.trial_id, expected.state)
    for epoch, other in zip(outcome.model_epochs, expected.model_epochs, strict=True):
        assert (epoch.tokens, epoch.averaging) == (other.tokens, other.averaging)
        assert epoch.valid_loss == pytest.approx(other.valid_loss, abs=1e-4)
    assert outcome.measurements.keys() == expected.measurements.keys()
    if expected.state == "done":
        perplexity = expected.metrics["test_perplexity"]
        assert outcome.metrics["test_perplexity"] == pytest.approx(perplexity, rel=1e-3)
        assert outcome.metrics["kept_epoch"] == expected.metrics["kept_epoch"]


def test_stacked_trials_end_as_alone(alone: dict[str, TrialOutcome], tmp_path: Path) -> None:
    queue, taken_up = tasks(tmp_path, CONFIGS), list[TrialTask]()
    results = outcomes(run_stack(queue, runtime=EVERY_STEP, most=3, taken_up=taken_up.append))
    assert taken_up == queue and results.keys() == CONFIGS.keys()
    assert results["diverges"].state == "diverged"
    again = outcomes(run_stack(tasks(tmp_path, CONFIGS), runtime=RUNTIME, most=3))
    assert again == results, "done trials must not train again"
    for name, outcome in results.items():
        assert_same(outcome, alone[name])
        if outcome.state == "done":
            assert names_in(tmp_path / name) == set(FILES)


def test_pruned_trial_goes_on(alone: dict[str, TrialOutcome], tmp_path: Path) -> None:
    pruned, *mates = tasks(tmp_path, ["mos", "gss", "short", "softmax"])
    queue = [dataclasses.replace(pruned, stop_above={1: 0.0}), *mates]
    ended = outcomes(run_stack(queue, runtime=RUNTIME, most=3))
    assert ended["mos"].state == "pruned"
    later = outcomes(run_stack(tasks(tmp_path, ["mos"]), runtime=RUNTIME, most=2))
    for name, outcome in (ended | later).items():
        assert_same(outcome, alone[name])


def test_checkpoint_writing_blocks_no_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trial, steps = smoke_trial(), list[int]()
    write, step = Checkpoints._write, Trainer.step

    def slow(checkpoints: Checkpoints, at: int, *content: Any) -> None:
        while not steps or steps[-1] < at + 3:
            time.sleep(0.001)
        if at > 20:
            raise OSError("no space left")
        write(checkpoints, at, *content)

    def counted(trainer: Trainer) -> None:
        step(trainer)
        steps.append(trainer.progress.step)

    monkeypatch.setattr(Checkpoints, "_write", slow)
    monkeypatch.setattr(Trainer, "step", counted)
    often = Runtime(checkpoint_every_s=1e-9)
    monkeypatch.setattr(checkpoint, "MAX_SHARE", 1e9)
    with pytest.raises(OSError, match="no space left"):
        run_trial(trial, directory=tmp_path, runtime=often)
    monkeypatch.undo()
    assert Checkpoints(TrialFolder(tmp_path, trial.trial_id)).latest("cpu") is not None
    assert run_trial(trial, directory=tmp_path, runtime=Runtime()).state == "done"


@pytest.mark.parametrize("name", ["diverges", "short"])
def test_failing_trial_spares_its_mates(
    name: str,
    alone: dict[str, TrialOutcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A failed stack must be freed before the next one starts.

    A traceback still refers to its frames, which could keep it alive.
    """
    stacks, alive = list[weakref.ref[Stack]](), list[int]()

    class Watched(Stack):
        def __init__(self, trainers: Sequence[Trainer]) -> None:
            alive.append(sum(stack() is not None for stack in stacks))
            stacks.append(weakref.ref(self))
            super().__init__(trainers)

    first, *mates = tasks(tmp_path, [name, "gss", "moc"])
    monkeypatch.setattr(run, "Stack", Watched)
    gc.disable()
    try:
        queue = [dataclasses.replace(first, on_epoch=fail), *mates]
        ended = {
            task.directory.name: outcome
            for task, outcome in run_stack(queue, runtime=RUNTIME, most=2)
        }
    finally:
        gc.enable()
    assert len(alive) > 1 and not any(alive)
    assert name == "diverges" or isinstance(ended[name], ValueError)
    for mate in ("gss", "moc"):
        outcome = ended[mate]
        assert isinstance(outcome, TrialOutcome)
        assert_same(outcome, alone[mate])
