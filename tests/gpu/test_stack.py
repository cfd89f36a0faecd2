"""A stack whose steps are captured on a device, with every dropout on. `prove-gpu` compares stacks
with the same trials alone."""

from __future__ import annotations

from typing import Any
from unittest.mock import Mock

import pytest
import torch

from tests.support.device_trials import (
    STACKED,
    assert_same_bits,
    trainer_on,
    transformer_on,
)
from trainables.config import EtAsgdConfig, OutputLayerConfig
from trainables.device import Graphs
from trainables.stack import Stack, program
from trainables.training import Trainer

OPTIMIZERS = ("sgd", "adam", "adamw")
"""The last one is a Transformer's."""


def new_trainer(
    device: str, layer: OutputLayerConfig, seed: int, optimizer: str, **training: Any
) -> Trainer:
    if optimizer == "adamw":
        return transformer_on(device, layer, seed=seed, **training)
    rate = 5.0 if optimizer == "sgd" else 0.003
    return trainer_on(device, layer, seed=seed, optimizer=optimizer, learning_rate=rate, **training)


def with_changes_of_mates(device: str, optimizer: str) -> list[Trainer]:
    """Trials of every layer, each for most of a hundred steps: windows of many lengths, averages
    that begin on the way, one trial that leaves early, and one that joins late. On a CPU,
    which captures nothing, a fifth of that."""
    layers = (*STACKED, STACKED[2], STACKED[0])
    averaging = [
        {} if optimizer == "adamw" else {"averaging": EtAsgdConfig(switch_epoch=1 + n)}
        for n in range(len(layers))
    ]
    *members, later = trainers = [
        new_trainer(device, layer, min(number, 6), optimizer, epoch_tokens=700, **averaging[number])
        for number, layer in enumerate(layers)
    ]
    share = 1 if device == "cuda" else 5
    for steps, leaving, joining in ((40, members[0], None), (30, None, later), (60, None, None)):
        stack = Stack(members)
        for _ in range(steps // share):
            stack.step()
            for trainer in members:
                if trainer.ends_epoch:
                    trainer.end_epoch()
        if leaving is not None:
            stack.leave(leaving)
            members.remove(leaving)
        members += [] if joining is None else [joining]
    return trainers


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.usefixtures("same_bits")
def test_captured_steps_are_the_steps_bit_by_bit(
    device: str, optimizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = Mock(wraps=Graphs.captured)
    monkeypatch.setattr(Graphs, "captured", lambda *of_work: captured(*of_work))
    replayed = with_changes_of_mates(device, optimizer)
    if device == "cuda":  # a Transformer's windows are of one length: a capture a stack
        assert captured.call_count == 3 if optimizer == "adamw" else captured.call_count > 10
    monkeypatch.setattr(program, "MOST_GRAPHS", 0)
    captured.reset_mock()
    for trainer, expected in zip(replayed, with_changes_of_mates(device, optimizer), strict=True):
        assert_same_bits(trainer, expected)
    assert not captured.called


@pytest.mark.usefixtures("same_bits")
def test_graphs_outlive_those_of_another_stack(
    device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which take with them what cuBLAS had of their stream; what is free is given back, so that it
    would be missed."""

    def after_another() -> list[Trainer]:
        trainers, others = (
            [trainer_on(device, STACKED[2], seed=seed) for seed in seeds]
            for seeds in ((1, 2), (3, 4))
        )
        stack, other = Stack(trainers), Stack(others)
        for _ in range(30):
            stack.step()
            other.step()
        del other
        if device == "cuda":
            torch.cuda.empty_cache()
        for _ in range(30):
            stack.step()
        return trainers

    replayed = after_another()
    monkeypatch.setattr(program, "MOST_GRAPHS", 0)
    for trainer, expected in zip(replayed, after_another(), strict=True):
        assert_same_bits(trainer, expected)
