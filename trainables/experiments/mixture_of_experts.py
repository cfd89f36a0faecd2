"""Layers of experts: K small layers, summed with input-dependent gates.

Source: Orhan (2018). The dense layer and the initial weights follow Orhan's program
(github.com/eminorhan/mixture-of-experts), which has one gate per expert of a dense layer, and one
per expert and filter of a convolution. The non-local layer is that of Wang et al. (2018).

Shapes: N examples, K experts, O outputs, U gates per expert (1 or O; of a convolution 1 or F), I
input width. Images have C channels or F filters and P pixels, as H rows of W.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear

from trainables.config import (
    PIXELS,
    ConvolutionLayerConfig,
    HiddenLayerConfig,
    NonLocalLayerConfig,
)


class MixtureOfExperts(nn.Module):
    """y = sum_k g_k(x) relu(W_k x), with g the softmax over experts of V_k x + b_k.

    Constant gates are 1/K and have no parameters. A dense layer is one expert with a constant gate.
    Without `gate_bias` there are no b_k.
    """

    def __init__(
        self, config: HiddenLayerConfig, input_width: int, output_width: int, *, gate_bias: bool
    ) -> None:
        super().__init__()
        experts, softmax = config.experts, config.gates == "softmax"
        shape: tuple[int, ...] = (output_width, input_width)
        if isinstance(config, ConvolutionLayerConfig):
            shape = (output_width // PIXELS, input_width // PIXELS, 3, 3)
        gates = 1 if config.gate_for == "expert" else shape[0]
        self.expert_weights_KOI = nn.Parameter(torch.empty(experts, *shape))
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
                fans = (weights.shape[1] + weights.shape[2]) * weights[0, 0, 0].numel()
                limit = math.sqrt(6 / fans)
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


class ConvolutionalExperts(MixtureOfExperts):
    """y = sum_k g_k(x) relu(W_k * x): convolutions of an image, padded with zeros to its size.

    Inputs are N x C P and outputs N x F P. Gates depend on the whole image.
    """

    def gates(self, inputs_NI: Tensor) -> Tensor:
        """Return the gates, N x K x F P; constant gates are 1/K, with N = F P = 1."""
        gates_NKU = super().gates(inputs_NI)
        return gates_NKU.repeat_interleave(1 if len(gates_NKU[0, 0]) == 1 else PIXELS, dim=2)

    def expert_scores(self, inputs_NI: Tensor) -> Tensor:
        """Return the experts' outputs before relu, N x K x F P."""
        images_NCHW = inputs_NI.unflatten(1, (-1, *[math.isqrt(PIXELS)] * 2))
        scores = conv2d(images_NCHW, self.expert_weights_KOI.flatten(0, 1), padding="same")
        return scores.flatten(1).unflatten(1, (len(self.expert_weights_KOI), -1))


class NonLocal(MixtureOfExperts):
    """y_i = sum_j g_j(x_i) W x_j over pixels j, with g(x_i) the softmax over j of x_i V x_j.

    Constant gates are 1/P. Weights are C x C; inputs and outputs are N x P C.
    """

    def forward(self, inputs_NI: Tensor) -> Tensor:
        """Return outputs, N x P C."""
        pixels_NPC = inputs_NI.unflatten(1, (PIXELS, -1))
        values_NPC = linear(pixels_NPC, self.expert_weights_KOI[0])
        if self.gate_weights_KUI is None:
            return values_NPC.mean(dim=1).repeat(1, PIXELS)
        scores_NPP = pixels_NPC @ self.gate_weights_KUI[0] @ pixels_NPC.mT
        return (scores_NPP.softmax(dim=2) @ values_NPC).flatten(1)


def make_layer(
    config: HiddenLayerConfig, inputs: int, outputs: int, *, gate_bias: bool
) -> MixtureOfExperts:
    """Return the config's layer, with weights not yet initialised."""
    if isinstance(config, NonLocalLayerConfig):
        return NonLocal(config, inputs // PIXELS, outputs // PIXELS, gate_bias=False)
    is_image = isinstance(config, ConvolutionLayerConfig)
    layer = ConvolutionalExperts if is_image else MixtureOfExperts
    return layer(config, inputs, outputs, gate_bias=gate_bias)
