from __future__ import annotations

import random
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.support import tiny_trial as tiny
from tests.support.processes import Process
from trainables.config import (
    EtAsgdConfig,
    GssConfig,
    LmsPlifFrozenConfig,
    MosConfig,
    NtAsgdConfig,
    OutputLayerConfig,
    TrialConfig,
)
from trainables.measurements import epoch_ranks
from trainables.runtime import Runtime
from trainables.training import Trainer
from trainables.trial_folder import Checkpoints, TrialFolder, load_tensors

ET_ASGD, NT_ASGD = (
    tiny.trial(averaging=rule, epochs=4, learning_rate=20.0, epoch_rank_contexts=30)
    for rule in (EtAsgdConfig(switch_epoch=2), NtAsgdConfig(nonmonotone_interval=1))
)
ADAM = {"optimizer": "adam", "learning_rate": 0.01, "warm_up_tokens": 500}
WITH_ADAM = ET_ASGD.model_copy(update={"training": ET_ASGD.training.model_copy(update=ADAM)})


def train_to_the_end(directory: Path, config: TrialConfig) -> None:
    torch.set_num_threads(1)
    trainer = Trainer(config, tiny.corpus(), Runtime(checkpoint_every_s=0.0), epoch_ranks)
    checkpoints = Checkpoints(TrialFolder(directory, config.trial_id))
    if (newest := checkpoints.latest("cpu")) is not None:
        trainer.restore(*newest)
    trainer.train(checkpoints, lambda _: None)
    checkpoints.save(10**9, *trainer.snapshot())


def train(_report: object, directory: Path, config: TrialConfig) -> None:
    train_to_the_end(directory, config)


def end_of(directory: Path) -> tuple[dict[str, torch.Tensor], list[dict[str, object]]]:
    tensors, state = load_tensors(directory / "checkpoint-001000000000.safetensors")
    epochs = state["progress"]["epochs"]
    for epoch in epochs:
        del epoch["seconds"]  # the only value that differs between repetitions
    return tensors, epochs


@pytest.mark.parametrize("config", [NT_ASGD, WITH_ADAM], ids=["sgd", "adam"])
def test_repeated_kills_keep_the_bits(tmp_path: Path, config: TrialConfig) -> None:
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    undisturbed.mkdir()
    disturbed.mkdir()
    train_to_the_end(undisturbed, config)
    chance = random.Random()
    for _ in range(2):
        process = Process(tmp_path, train, disturbed, config)
        target = _newest_step(disturbed) + chance.randint(3, 60)
        process.wait_until(partial(_is_reached, disturbed, target))
        process.kill()
    train_to_the_end(disturbed, config)
    (expected, epochs), (tensors, disturbed_epochs) = end_of(undisturbed), end_of(disturbed)
    assert disturbed_epochs == epochs
    assert all(epoch["press_rank"] and epoch["entropy_rank"] for epoch in epochs)
    assert tensors.keys() == expected.keys()
    assert any(name.startswith("average.") for name in tensors)
    for name, tensor in expected.items():
        assert torch.equal(tensor, tensors[name]), name


def _is_reached(directory: Path, step: int) -> bool:
    return _newest_step(directory) >= step


def _newest_step(directory: Path) -> int:
    names = sorted(path.stem for path in directory.glob("checkpoint-*.safetensors"))
    return int(names[-1].removeprefix("checkpoint-")) if names else 0


@pytest.mark.parametrize(
    ("layer", "training"),
    [
        (GssConfig(c=-1.5, k=2.5), {}),
        (GssConfig(c=-1.5, k=2.5), ADAM),
        (MosConfig(mixtures=2), {"precision": "bf16"}),
        (LmsPlifFrozenConfig(knots=50), {}),
        (LmsPlifFrozenConfig(knots=50), {"optimizer": "adam", "learning_rate": 0.01}),
    ],
    ids=lambda value: getattr(value, "name", None) or "-".join(map(str, value.values())) or "sgd",
)
def test_resuming_anywhere_changes_no_step(
    tmp_path: Path, layer: OutputLayerConfig, training: dict[str, Any]
) -> None:
    corpus = tiny.corpus(900)
    config = ET_ASGD.model_copy(
        update={"output_layer": layer, "training": ET_ASGD.training.model_copy(update=training)}
    )
    checkpoints = Checkpoints(TrialFolder(tmp_path, config.trial_id))
    straight = Trainer(config, corpus, Runtime())
    while len(straight.progress.epochs) < 3:
        checkpoints.save(straight.progress.step + 1, *straight.snapshot())
        resumed = Trainer(config, corpus, Runtime())
        newest = checkpoints.latest("cpu")
        assert newest is not None
        resumed.restore(*newest)
        for trainer in (straight, resumed):
            trainer.step()
            if trainer.ends_epoch:
                trainer.end_epoch()
        tensors, _ = resumed.snapshot()
        for name, tensor in straight.snapshot()[0].items():
            assert torch.equal(tensor, tensors[name]), (straight.progress.step, name)
