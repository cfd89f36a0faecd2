"""A stacked LSTM layer on a device, with kernels where it has them, against the framework's one by
one in float64, and stacks whose products are in bf16."""

from __future__ import annotations

import pytest
import torch

from tests.support import stacked_layers
from tests.support.device_trials import STACKED, trainer_on
from trainables.config import OutputLayerConfig
from trainables.device import products_in
from trainables.stack import Stack

TOLERANCES = {torch.float64: 1e-11, torch.float32: 2e-5, torch.bfloat16: 2.0**-6}
"""Relative to the norm of a result, by the dtype of the products; bf16 rounds each factor and
result to 8 bits."""


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(("batch", "inputs", "width"), [(3, 40, 70), (20, 400, 1150), (1, 1, 1)])
def test_a_layer_is_that_of_the_framework(
    device: str, dtype: torch.dtype, batch: int, inputs: int, width: int
) -> None:
    if device == "cpu" and width > 1000:
        batch, width = 2, 150  # as two cores have hours of tests to run
    layer = stacked_layers.layer(batch, inputs, width)
    of_weights = torch.float32 if dtype == torch.bfloat16 else dtype
    with products_in("float32", device):
        ours = stacked_layers.results(layer.to(device, of_weights), dtype)
    for result, truth in zip(ours, stacked_layers.true_results(layer), strict=True):
        assert float((result - truth).norm()) <= TOLERANCES[dtype] * float(truth.norm()) + 1e-6


@pytest.mark.parametrize("layer", STACKED, ids=lambda layer: layer.name)
def test_a_stack_in_bf16_is_nearly_that_alone(device: str, layer: OutputLayerConfig) -> None:
    """On a GPU the framework's LSTM rounds c to bf16, and a stack's does not."""
    alone, together = (
        [trainer_on(device, layer, seed=seed, precision="bf16") for seed in (1, 2)]
        for _ in range(2)
    )
    stack = Stack(together)
    for _ in range(25):
        for trainer in alone:
            trainer.step()
        stack.step()
    for trainer, expected in zip(together, alone, strict=True):
        assert float(trainer.epoch_loss) == pytest.approx(float(expected.epoch_loss), rel=2e-3)
        assert {tensor.dtype for pair in trainer.state for tensor in pair} == {torch.float32}
