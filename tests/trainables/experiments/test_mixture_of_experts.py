from __future__ import annotations

import math

import pytest
import torch

from trainables.config import (
    ConvolutionLayerConfig,
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    NonLocalLayerConfig,
)
from trainables.experiments.mixture_of_experts import MixtureOfExperts, make_layer


@pytest.mark.parametrize(
    "config",
    [
        DenseLayerConfig(),
        ExpertsLayerConfig(experts=2, gates="constant"),
        ExpertsLayerConfig(experts=2),
        ExpertsLayerConfig(experts=2, gate_for="unit"),
    ],
)
@pytest.mark.parametrize("gate_bias", [False, True])
def test_layer_is_gated_expert_sum(config: HiddenLayerConfig, gate_bias: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    layer = MixtureOfExperts(config, 3, 4, gate_bias=gate_bias)
    for parameter in layer.double().parameters():
        parameter.data.normal_(generator=generator)
    inputs = torch.randn(5, 3, dtype=torch.float64, generator=generator)
    outputs = layer(inputs)
    for n, o in ((n, o) for n in range(5) for o in range(4)):
        gates = [1.0] * config.experts
        if layer.gate_weights_KUI is not None:
            unit = o if layer.gate_weights_KUI.shape[1] == 4 else 0
            biases = torch.zeros(2) if layer.gate_bias_KU is None else layer.gate_bias_KU[:, unit]
            gates = (layer.gate_weights_KUI[:, unit] @ inputs[n] + biases).exp().tolist()
        experts = [
            max(score, 0.0) for score in (layer.expert_weights_KOI[:, o] @ inputs[n]).tolist()
        ]
        expected = sum(gate * expert for gate, expert in zip(gates, experts, strict=True)) / sum(
            gates
        )
        assert outputs[n, o].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("gates", ["softmax", "constant"])
@pytest.mark.parametrize("gate_bias", [False, True])
def test_convolution_is_a_double_loop(gates: str, gate_bias: bool) -> None:
    config = ConvolutionLayerConfig.model_validate({"experts": 2, "gates": gates})
    generator = torch.Generator().manual_seed(6)
    layer = make_layer(config, 3 * 64, 2 * 64, gate_bias=gate_bias).double()
    for parameter in layer.parameters():
        parameter.data.normal_(generator=generator)
    image = torch.randn(3 * 64, dtype=torch.float64, generator=generator)
    outputs = layer(image[None])[0].reshape(2, 8, 8)
    weights, pixels = layer.expert_weights_KOI, image.reshape(3, 8, 8)
    for f, row, column in (
        (f, row, column) for f in range(2) for row in range(8) for column in range(8)
    ):
        experts = [0.0, 0.0]
        for k, c, i, j in (
            (k, c, i, j) for k in range(2) for c in range(3) for i in range(3) for j in range(3)
        ):
            y, x = row + i - 1, column + j - 1
            if 0 <= y < 8 and 0 <= x < 8:
                experts[k] += weights[k, f, c, i, j].item() * pixels[c, y, x].item()
        scores = [0.0, 0.0]
        if layer.gate_weights_KUI is not None:
            bias = torch.zeros(2, 2) if layer.gate_bias_KU is None else layer.gate_bias_KU
            scores = [(layer.gate_weights_KUI[k, f] @ image + bias[k, f]).item() for k in range(2)]
        powers = [math.exp(score) for score in scores]
        expected = sum(g * max(h, 0.0) for g, h in zip(powers, experts, strict=True)) / sum(powers)
        assert outputs[f, row, column].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("gates", ["softmax", "constant"])
def test_pixels_are_summed_over_all_pixels(gates: str) -> None:
    config = NonLocalLayerConfig.model_validate({"gates": gates})
    layer = make_layer(config, 3 * 64, 3 * 64, gate_bias=False).double()
    layer.initialise(torch.Generator().manual_seed(7))
    image = torch.randn(64, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(8))
    outputs = layer(image.reshape(1, -1))[0].reshape(64, 3)
    weights = layer.expert_weights_KOI[0]
    for i in range(0, 64, 9):
        powers = [1.0] * 64
        if layer.gate_weights_KUI is not None:
            powers = [(image[i] @ layer.gate_weights_KUI[0] @ x).exp().item() for x in image]
        terms = [power * (weights @ x) for power, x in zip(powers, image, strict=True)]
        expected = torch.stack(terms).sum(0) / sum(powers)
        torch.testing.assert_close(outputs[i], expected, rtol=0, atol=1e-12)
