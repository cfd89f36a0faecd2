"""A stack on a device against the same trials alone there, with every dropout on."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.support import tiny_trial as tiny
from tests.support.device_trials import STACKED, losses, trainer_on
from trainables.stack import Stack
from trainables.training import Trainer

STEPS = 25


def alone_and_together(device: str, layers: tuple[int, ...], optimizer: str) -> list[tuple[Trainer, Trainer]]:
    """The same trials, of the layers of these numbers, after their steps."""
    rate = 5.0 if optimizer == "sgd" else 0.003
    alone, together = (
        [
            trainer_on(device, STACKED[number], seed=seed, optimizer=optimizer, learning_rate=rate)
            for seed, number in enumerate(layers, 1)
        ]
        for _ in range(2)
    )
    for trainer in alone:
        losses(trainer, STEPS)
    stack = Stack(together)
    for _ in range(STEPS):
        stack.step()
        for trainer in together:
            trainer.epoch_is_over()
    return list(zip(alone, together, strict=True))


def numbers_of(trainer: Trainer) -> dict[str, Tensor]:
    return {name: tensor for name, tensor in trainer.snapshot()[0].items() if "random.global" not in name}


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@pytest.mark.usefixtures("in_float64")
def test_in_float64_every_weight_moment_and_state_is_the_same(device: str, optimizer: str) -> None:
    for alone, together in alone_and_together(device, tuple(range(len(STACKED))), optimizer):
        expected, result = numbers_of(alone), numbers_of(together)
        assert result.keys() == expected.keys()
        for name, tensor in expected.items():
            torch.testing.assert_close(result[name], tensor, rtol=1e-9, atol=1e-9, msg=name)


@pytest.mark.parametrize("number", range(len(STACKED)), ids=lambda number: STACKED[number].name)
def test_in_float32_perplexities_are_the_same_to_a_thousandth(device: str, number: int) -> None:
    for alone, together in alone_and_together(device, (number, number, number), "sgd"):
        expected, result = (trainer.epoch_loss / trainer.progress.epoch_tokens for trainer in (alone, together))
        assert float(result.exp()) == pytest.approx(float(expected.exp()), rel=1e-3)


def test_a_trial_of_a_stack_validates_and_goes_on_alone(device: str) -> None:
    trainers = [trainer_on(device, STACKED[2], seed=seed) for seed in (1, 2)]
    stack = Stack(trainers)
    for _ in range(5):
        stack.step()
    for trainer in trainers:
        assert trainer.end_epoch().valid_loss < 2 * torch.tensor(float(tiny.VOCABULARY)).log()
        trainer.step()
