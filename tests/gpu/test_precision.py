from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.support.device_trials import LAYERS, trainer_on
from tests.support.products import DtypeRecorder
from trainables.config import OutputLayerConfig
from trainables.device import Precision, network_dtype, products_in
from trainables.language_model.awd_lstm import LstmLayer

STEPS, BATCH, WIDTH = 12, 8, 96


def lstm(device: str, dtype: torch.dtype = torch.float32) -> tuple[LstmLayer, Tensor]:
    random = torch.Generator().manual_seed(1)
    layer = LstmLayer(WIDTH, WIDTH)
    layer.initialise(random)
    inputs = torch.randn(STEPS, BATCH, WIDTH, generator=random)
    return layer.to(device, dtype), inputs.to(device, dtype)


def outputs_and_gradient(
    layer: LstmLayer, inputs: Tensor, precision: Precision, scale: float
) -> tuple[Tensor, Tensor]:
    zero = inputs.new_zeros(1, BATCH, WIDTH)
    dtype = network_dtype(precision, inputs)
    outputs, state = layer(inputs, (zero, zero), layer.weight_hh, dtype)
    assert {tensor.dtype for tensor in (outputs, *state)} == {inputs.dtype}
    (gradient,) = torch.autograd.grad(scale * outputs.square().sum(), [layer.weight_hh])
    return outputs.detach().double().cpu(), gradient.double().cpu() / scale


def off(value: Tensor, truth: Tensor) -> float:
    return float((value - truth).norm() / truth.norm())


def test_bf16_lstm_keeps_small_gradients(device: str) -> None:
    """The gradients are about 1e-11. float16 rounds numbers below 6e-8 to zero."""
    layer, inputs = lstm(device)
    _, truth = outputs_and_gradient(layer, inputs, "float32", 1.0)
    outputs, gradient = outputs_and_gradient(layer, inputs, "bf16", 1e-12)
    assert off(gradient, truth) < 0.1
    rounded = outputs.to(torch.bfloat16).double()
    assert torch.equal(outputs, rounded) == (device == "cuda"), "a CPU computes in float32"


@pytest.mark.parametrize("precision", ["float32", "tf32"])
def test_tf32_only_if_requested(device: str, precision: Precision) -> None:
    if device == "cuda" and precision == "tf32" and torch.cuda.get_device_capability() < (8, 0):
        pytest.skip("this GPU has no TF32")
    random = torch.Generator().manual_seed(2)
    left, right = (torch.randn(256, 256, generator=random) for _ in range(2))
    layer, inputs = lstm(device)
    with products_in(precision, device):
        product = (left.to(device) @ right.to(device)).double().cpu()
        outputs, _ = outputs_and_gradient(layer, inputs, precision, 1.0)
    exact, _ = outputs_and_gradient(*lstm("cpu", torch.float64), "float32", 1.0)
    rounds = device == "cuda" and precision == "tf32"
    error = off(product, left.double() @ right.double())
    assert 2e-5 < error < 5e-3 if rounds else error < 2e-6
    # cuDNN may round an LSTM's inputs to TF32, but does not have to.
    assert off(outputs, exact) < (5e-3 if rounds else 2e-6)


@pytest.mark.parametrize("precision", ["float32", "tf32", "bf16"])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_only_products_change_dtype(
    device: str, layer: OutputLayerConfig, precision: Precision
) -> None:
    trainer = trainer_on(device, layer, precision=precision)
    with DtypeRecorder() as recorder:
        trainer.step()
    of_bf16 = {torch.bfloat16} if device == "cuda" else {torch.bfloat16, torch.float32}
    assert recorder.product_dtypes == (of_bf16 if precision == "bf16" else {torch.float32})
    for name, tensor in trainer.snapshot()[0].items():
        assert tensor.dtype == torch.float32 or name.startswith(("random", "epoch"))
