from __future__ import annotations

import pytest
import torch

from trainables.config import DenseLayerConfig, ExpertsLayerConfig, HiddenLayerConfig
from trainables.experiments.mixture_of_experts import MixtureOfExperts


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
