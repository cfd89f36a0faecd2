"""Stacks whose products are in bf16: on a CPU against the same trials alone, and a GPU's way on the
device "meta"."""

from __future__ import annotations

import pytest
import torch

from tests.support.device_trials import STACKED, trainer_on
from tests.support.products import Asked
from trainables.config import OutputLayerConfig
from trainables.stack import Stack
from trainables.stack.validation import valid_losses
from trainables.training import Trainer, loop


def trainers(layer: OutputLayerConfig, device: str = "cpu") -> list[Trainer]:
    return [trainer_on(device, layer, seed=seed, precision="bf16") for seed in (1, 2, 3)]


def test_validation_is_in_float32() -> None:
    together = trainers(STACKED[4])
    for trainer in together:
        trainer.step()
    alone = [trainer.end_epoch().valid_loss for trainer in together]
    with Asked() as asked:
        stacked = valid_losses(together)
    assert asked.product_dtypes == {torch.float32}
    assert stacked == pytest.approx(alone, rel=1e-5)


@pytest.mark.parametrize("layer", STACKED, ids=lambda layer: layer.name)
def test_products_are_in_bf16_on_a_gpu(
    layer: OutputLayerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        loop, "generator", lambda seed, _device: torch.Generator().manual_seed(seed)
    )
    together = trainers(layer, device="meta")
    stack = Stack(together)
    with Asked() as asked:
        stack.step()
    assert asked.product_dtypes == {torch.bfloat16}
    kept = [tensor for trainer in together for pair in trainer.state for tensor in pair]
    kept += [t for weight in stack.weights for t in (weight, weight.grad) if t is not None]
    assert {tensor.dtype for tensor in kept} == {torch.float32}
