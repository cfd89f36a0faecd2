"""A stacked LSTM layer on a device, with kernels where it has them, against the framework's one by one in float64."""

from __future__ import annotations

import pytest
import torch

from tests.support import stacked_layers
from trainables.device import products_in

TOLERANCES = {torch.float64: 1e-11, torch.float32: 2e-5}
"""Relative to the norm of a result."""


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize(("batch", "inputs", "width"), [(3, 40, 70), (20, 400, 1150), (1, 1, 1)])
def test_a_layer_is_that_of_the_framework_one_by_one(
    device: str, dtype: torch.dtype, batch: int, inputs: int, width: int
) -> None:
    if device == "cpu" and width > 1000:
        batch, width = 2, 150  # as two cores have hours of tests to run
    layer = stacked_layers.layer(batch, inputs, width)
    with products_in("float32", device):
        ours = stacked_layers.results(layer.to(device, dtype))
    for result, truth in zip(ours, stacked_layers.true_results(layer), strict=True):
        assert float((result - truth).norm()) <= TOLERANCES[dtype] * float(truth.norm()) + 1e-12
