"""Layers of experts against their formula written out, and how their weights start."""

from __future__ import annotations

import math

import pytest
import torch
from torch import nn

from trainables.config import DenseLayerConfig, ExpertsLayerConfig, HiddenLayerConfig
from trainables.experiments.mixture_of_experts import MixtureOfExperts


@pytest.mark.parametrize("gate_for", ["expert", "unit"])
@pytest.mark.parametrize("gate_bias", [False, True])
def test_the_layer_is_the_gated_sum_of_its_experts(gate_for: str, gate_bias: bool) -> None:
    generator = torch.Generator().manual_seed(5)
    config = ExpertsLayerConfig.model_validate({"experts": 2, "gate_for": gate_for})
    layer = MixtureOfExperts(config, 3, 4, gate_bias=gate_bias)
    for parameter in layer.double().parameters():
        parameter.data.normal_(generator=generator)
    inputs = torch.randn(5, 3, dtype=torch.float64, generator=generator)
    outputs = layer(inputs)
    assert layer.gate_weights_KUI is not None
    for n, o in ((n, o) for n in range(5) for o in range(4)):
        unit = o if gate_for == "unit" else 0
        biases = torch.zeros(2) if layer.gate_bias_KU is None else layer.gate_bias_KU[:, unit]
        scores = layer.gate_weights_KUI[:, unit] @ inputs[n] + biases
        gates = [math.exp(score) for score in scores.tolist()]
        experts = [max(score, 0.0) for score in (layer.expert_weights_KOI[:, o] @ inputs[n]).tolist()]
        expected = sum(gate * expert for gate, expert in zip(gates, experts, strict=True)) / sum(gates)
        assert outputs[n, o].item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("config", [DenseLayerConfig(), ExpertsLayerConfig(experts=3, gates="constant")])
def test_constant_gates_give_the_mean_of_linear_layers_with_relu(config: HiddenLayerConfig) -> None:
    layer = MixtureOfExperts(config, 3, 4, gate_bias=True)
    layer.initialise(torch.Generator().manual_seed(4))
    assert len(list(layer.parameters())) == 1
    inputs = torch.randn(6, 3, generator=torch.Generator().manual_seed(5))
    plain = [nn.functional.linear(inputs, weights).relu() for weights in layer.expert_weights_KOI]
    torch.testing.assert_close(layer(inputs), torch.stack(plain).mean(0))


def test_weights_start_glorot_uniform_each_expert_for_itself_and_biases_at_zero() -> None:
    layer = MixtureOfExperts(ExpertsLayerConfig(experts=3), 100, 200, gate_bias=True)
    layer.initialise(torch.Generator().manual_seed(1))
    assert layer.gate_weights_KUI is not None and layer.gate_bias_KU is not None
    for weights, numbers in ((layer.expert_weights_KOI, 300), (layer.gate_weights_KUI, 101)):
        limit, largest = math.sqrt(6 / numbers), float(weights.detach().abs().max())
        assert 0.95 * limit < largest <= limit
        assert float(weights.detach().var()) == pytest.approx(limit**2 / 3, rel=0.1), "of a uniform distribution"
    assert not layer.gate_bias_KU.any()
