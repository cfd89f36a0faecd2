"""A layer of experts: K small layers, summed with input-dependent gates.

Source: Orhan (2018). The dense layer and the initial weights follow Orhan's program
(github.com/eminorhan/mixture-of-experts), which has one gate per expert.

Shapes: N examples, K experts, O outputs, U gates per expert (1 or O), I input width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from trainables.config import ExpertsLayerConfig, HiddenLayerConfig


class MixtureOfExperts(nn.Module):
    """y = sum_k g_k(x) relu(W_k x), with g the softmax over experts of V_k x + b_k.

    Constant gates are 1/K and have no parameters. A dense layer is one expert with a constant gate.
    Without `gate_bias` there are no b_k.
    """

    def __init__(
        self, config: HiddenLayerConfig, input_width: int, output_width: int, *, gate_bias: bool
    ) -> None:
        super().__init__()
        experts, gates, softmax = 1, 1, False
        if isinstance(config, ExpertsLayerConfig):
            experts, softmax = config.experts, config.gates == "softmax"
            gates = 1 if config.gate_for == "expert" else output_width
        self.expert_weights_KOI = nn.Parameter(torch.empty(experts, output_width, input_width))
        self.gate_weights_KUI = (
            nn.Parameter(torch.empty(experts, gates, input_width)) if softmax else None
        )
        self.gate_bias_KU = (
            nn.Parameter(torch.empty(experts, gates)) if softmax and gate_bias else None
        )

    @torch.no_grad()
    def initialise(self, generator: torch.Generator) -> None:
        """Draw Glorot-uniform weights (Glorot and Bengio 2010) per expert and gate; zero biases."""
        for weights in (self.expert_weights_KOI, self.gate_weights_KUI):
            if weights is not None:
                limit = math.sqrt(6 / (weights.shape[1] + weights.shape[2]))
                weights.uniform_(-limit, limit, generator=generator)
        if self.gate_bias_KU is not None:
            self.gate_bias_KU.zero_()

    def gates(self, inputs_NI: Tensor) -> Tensor:
        """Return the gates, N x K x U; constant gates are 1/K, with N = U = 1."""
        if self.gate_weights_KUI is None:
            experts = len(self.expert_weights_KOI)
            return inputs_NI.new_full((1, experts, 1), 1 / experts)
        bias_KU = None if self.gate_bias_KU is None else self.gate_bias_KU.flatten()
        scores = linear(inputs_NI, self.gate_weights_KUI.flatten(0, 1), bias_KU)
        return scores.unflatten(1, self.gate_weights_KUI.shape[:2]).softmax(dim=1)

    def expert_scores(self, inputs_NI: Tensor) -> Tensor:
        """Return the experts' outputs before relu, N x K x O."""
        scores = linear(inputs_NI, self.expert_weights_KOI.flatten(0, 1))
        return scores.unflatten(1, self.expert_weights_KOI.shape[:2])

    def forward(self, inputs_NI: Tensor) -> Tensor:
        """Return outputs, N x O."""
        return (self.gates(inputs_NI) * self.expert_scores(inputs_NI).relu()).sum(1)
