"""Interrupted training equals uninterrupted training, bit for bit: real processes, real SIGKILLs."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from tests.support import tiny_trial as tiny
from trainables.config import (
    EtAsgdConfig,
    GssConfig,
    LmsPlifFrozenConfig,
    MocConfig,
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    NtAsgdConfig,
    OutputLayerConfig,
    TrialConfig,
)
from trainables.runtime import Runtime
from trainables.training.loop import Trainer
from trainables.trial_folder.checkpoint import Checkpoints, load_tensors
from trainables.trial_folder.folder import TrialFolder

ROOT = Path(__file__).parents[2]
SCRIPT = """
import sys
from pathlib import Path
from tests.kills.test_training import train_to_the_end
train_to_the_end(Path(sys.argv[1]), sys.argv[2])
"""


def config_named(averaging: str) -> TrialConfig:
    rule = EtAsgdConfig(switch_epoch=2) if averaging == "et_asgd" else NtAsgdConfig(nonmonotone_interval=1)
    return tiny.trial(averaging=rule, epochs=4, learning_rate=20.0)


def train_to_the_end(directory: Path, averaging: str) -> None:
    """Train with a checkpoint after every step, going on from what is there; leave the result as `end`."""
    torch.set_num_threads(1)
    config = config_named(averaging)
    trainer = Trainer(config, tiny.corpus(), Runtime(checkpoint_every_s=0.0))
    checkpoints = Checkpoints(TrialFolder(directory, config.trial_id))
    if (found := checkpoints.latest("cpu")) is not None:
        trainer.restore(*found)
    trainer.train(checkpoints, lambda _: None)
    checkpoints.save(10**9, *trainer.snapshot())


def end_of(directory: Path) -> tuple[dict[str, torch.Tensor], list[dict[str, object]]]:
    tensors, state = load_tensors(directory / "checkpoint-001000000000.safetensors")
    epochs = state["progress"]["epochs"]
    for epoch in epochs:
        del epoch["seconds"]  # the one thing that a repetition changes
    return tensors, epochs


@pytest.mark.parametrize("averaging", ["et_asgd", "nt_asgd"])
def test_killed_again_and_again_it_ends_with_the_same_bits(tmp_path: Path, averaging: str) -> None:
    undisturbed, disturbed = tmp_path / "undisturbed", tmp_path / "disturbed"
    undisturbed.mkdir()
    disturbed.mkdir()
    train_to_the_end(undisturbed, averaging)

    chance = random.Random(averaging)
    kills = 0
    for _ in range(40):
        process = subprocess.Popen([sys.executable, "-c", SCRIPT, str(disturbed), averaging], cwd=ROOT)
        if kills < 3:
            steps_before = _newest_step(disturbed)
            target = steps_before + chance.randint(3, 40)
            while process.poll() is None and _newest_step(disturbed) < target:
                time.sleep(0.002)
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
                kills += 1
        if process.wait() == 0:
            break
    assert kills == 3
    expected, found = end_of(undisturbed), end_of(disturbed)
    assert found[1] == expected[1]
    assert found[0].keys() == expected[0].keys()
    assert any(name.startswith("average.") for name in found[0])
    for name, tensor in expected[0].items():
        assert torch.equal(tensor, found[0][name]), name


def _newest_step(directory: Path) -> int:
    names = sorted(path.stem for path in directory.glob("checkpoint-*.safetensors"))
    return int(names[-1].removeprefix("checkpoint-")) if names else 0


@pytest.mark.parametrize(
    ("layer", "precision"),
    [
        (GssConfig(c=-1.5, k=2.5), "float32"),
        (MosConfig(mixtures=2), "bf16"),
        (MosPlifConfig(mixtures=2, knots=50), "float32"),
        (MocConfig(mixtures=2), "float32"),
        (LmsPlifFrozenConfig(knots=50), "float32"),
        (MonotoneNnConfig(units=4), "float32"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_resuming_from_any_step_gives_the_same_next_steps(
    tmp_path: Path, layer: OutputLayerConfig, precision: str
) -> None:
    """Every single step of the first two epochs, the averaging switch included."""
    config = config_named("et_asgd")
    training = config.training.model_copy(update={"precision": precision})
    config = config.model_copy(update={"output_layer": layer, "training": training})
    checkpoints = Checkpoints(TrialFolder(tmp_path, config.trial_id))
    straight = Trainer(config, tiny.corpus(), Runtime())
    while len(straight.progress.epochs) < 3:
        checkpoints.save(straight.progress.step + 1, *straight.snapshot())
        resumed = Trainer(config, tiny.corpus(), Runtime())
        found = checkpoints.latest("cpu")
        assert found is not None
        resumed.restore(*found)
        for trainer in (straight, resumed):
            trainer.step()
            if trainer.epoch_is_over():
                trainer.end_epoch()
        one, other = straight.snapshot(), resumed.snapshot()
        for name, tensor in one[0].items():
            assert torch.equal(tensor, other[0][name]), (straight.progress.step, name)


def test_a_damaged_newest_checkpoint_falls_back_to_the_one_before(tmp_path: Path) -> None:
    config = config_named("et_asgd")
    checkpoints = Checkpoints(TrialFolder(tmp_path, config.trial_id))
    trainer = Trainer(config, tiny.corpus(), Runtime())
    for step in (1, 2, 3):
        trainer.step()
        checkpoints.save(step, *trainer.snapshot())
    files = sorted(tmp_path.iterdir())
    assert len(files) == 2
    files[-1].write_bytes(files[-1].read_bytes()[:-1000])
    found = checkpoints.latest("cpu")
    assert found is not None
    assert found[1]["progress"]["step"] == 2


def test_a_checkpoint_of_another_trial_is_not_taken(tmp_path: Path) -> None:
    trainer = Trainer(config_named("et_asgd"), tiny.corpus(), Runtime())
    Checkpoints(TrialFolder(tmp_path, "another")).save(1, *trainer.snapshot())
    assert Checkpoints(TrialFolder(tmp_path, trainer.config.trial_id)).latest("cpu") is None
