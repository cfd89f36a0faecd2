"""Layers of experts: the sum of K small layers, each weighted by a gate that looks at the input.

Source: Orhan (2018), "The softmax bottleneck is a special case of a more general phenomenon", y = sum_k g_k(x) h_k(x),
and the layers that he released with it (github.com/eminorhan/mixture-of-experts). There, the dense layer has one gate
an expert, a number by which all outputs of the expert are multiplied, and the convolutional one a gate for each expert
and filter, the same at all positions; in both, a gate looks at the whole input, and softmax is taken over the experts.
`gate_each_output` chooses. Weights start as in his dense layer; his convolutional one draws them from a normal
distribution.

Dimensions: N examples, K experts, O output units or channels, U gates an expert (1 or O), I numbers in an input.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional

Activation = Callable[[Tensor], Tensor]
"""From scores to values of the same shape. Those of gates and experts have the experts on dimension 1."""
CONVOLUTIONS: dict[int, Callable[..., Tensor]] = {1: functional.conv1d, 2: functional.conv2d, 3: functional.conv3d}


def relu(scores: Tensor) -> Tensor:
    """max(0, x)."""
    return functional.relu(scores)


def softmax_over_experts(scores: Tensor) -> Tensor:
    """Gates that are positive and sum to one over the experts, which are dimension 1."""
    return scores.softmax(dim=1)


class ExpertSum(nn.Module, ABC):
    """What the dense and the convolutional layer share: the gates, the weighted sum, how weights start.

    `gate_activation` None makes every gate the constant 1/K, without parameters. A mixture of one expert with a
    constant gate is the plain layer.
    """

    def __init__(
        self,
        *,
        experts: int,
        outputs: int,
        expert_shape: tuple[int, ...],
        input_numbers: int,
        gate_activation: Activation | None,
        expert_activation: Activation,
        expert_bias: bool,
        gate_bias: bool,
        gate_each_output: bool,
    ) -> None:
        """`expert_shape` is that of one output's weights in one expert; `input_numbers` is I."""
        super().__init__()
        if experts < 1:
            raise ValueError(f"a mixture has at least one expert, got {experts}")
        self.experts, self.outputs = experts, outputs
        self.gate_activation, self.expert_activation = gate_activation, expert_activation
        self.expert_weights = nn.Parameter(torch.empty(experts, outputs, *expert_shape))
        self.expert_bias_KO = nn.Parameter(torch.empty(experts, outputs)) if expert_bias else None
        gated = gate_activation is not None
        gates = outputs if gate_each_output else 1
        self.gate_weights_KUI = nn.Parameter(torch.empty(experts, gates, input_numbers)) if gated else None
        self.gate_bias_KU = nn.Parameter(torch.empty(experts, gates)) if gated and gate_bias else None
        self.initialise()

    @torch.no_grad()
    def initialise(self, generator: torch.Generator | None = None) -> None:
        """Glorot-uniform weights (Glorot and Bengio 2010), each expert and each expert's gates as a layer of their
        own; biases 0."""
        _, outputs, inputs, *kernel = self.expert_weights.shape
        _glorot(self.expert_weights, (inputs + outputs) * math.prod(kernel), generator)
        if self.gate_weights_KUI is not None:
            _, gates, numbers = self.gate_weights_KUI.shape
            _glorot(self.gate_weights_KUI, numbers + gates, generator)
        for bias in (self.expert_bias_KO, self.gate_bias_KU):
            if bias is not None:
                bias.zero_()

    def gates(self, inputs: Tensor) -> Tensor:
        """N x K x U: by how much each expert counts, or 1/K for each where gates are constant (N = U = 1)."""
        if self.gate_activation is None or self.gate_weights_KUI is None:
            return inputs.new_full((1, self.experts, 1), 1 / self.experts)
        bias_KU = None if self.gate_bias_KU is None else self.gate_bias_KU.flatten()
        scores = functional.linear(inputs.flatten(1), self.gate_weights_KUI.flatten(0, 1), bias_KU)
        return self.gate_activation(scores.unflatten(1, self.gate_weights_KUI.shape[:2]))

    @abstractmethod
    def expert_scores(self, inputs: Tensor) -> Tensor:
        """N x K x O, and positions behind where there are some: the experts before their activation."""

    def mix(self, inputs: Tensor) -> Tensor:
        """The layer's output for inputs with one leading dimension N."""
        experts = self.expert_activation(self.expert_scores(inputs))
        gates = self.gates(inputs)
        return (gates.reshape(*gates.shape, *(1,) * (experts.dim() - 3)) * experts).sum(1)


class MixtureOfExperts(ExpertSum):
    """y = sum_k g_k(x) f(W_k x + c_k), for vectors x: takes the place of a linear layer with its activation."""

    def __init__(
        self,
        input_width: int,
        output_width: int,
        experts: int,
        *,
        gate_activation: Activation | None = softmax_over_experts,
        expert_activation: Activation = relu,
        expert_bias: bool = True,
        gate_bias: bool = True,
        gate_each_output: bool = False,
    ) -> None:
        super().__init__(
            experts=experts,
            outputs=output_width,
            expert_shape=(input_width,),
            input_numbers=input_width,
            gate_activation=gate_activation,
            expert_activation=expert_activation,
            expert_bias=expert_bias,
            gate_bias=gate_bias,
            gate_each_output=gate_each_output,
        )

    def expert_scores(self, inputs: Tensor) -> Tensor:
        """N x K x O of inputs N x I."""
        bias_KO = None if self.expert_bias_KO is None else self.expert_bias_KO.flatten()
        scores = functional.linear(inputs, self.expert_weights.flatten(0, 1), bias_KO)
        return scores.unflatten(1, (self.experts, self.outputs))

    def forward(self, inputs: Tensor) -> Tensor:
        """Outputs ... x O of inputs ... x I, whatever dimensions come first."""
        return self.mix(inputs.reshape(-1, inputs.shape[-1])).reshape(*inputs.shape[:-1], self.outputs)


class ConvolutionalMixtureOfExperts(ExpertSum):
    """y = sum_k g_k(x) f(W_k * x + c_k), * a convolution over 1, 2 or 3 dimensions and g of the whole input.

    As a gate looks at every number of the input, the layer is made for inputs of one size.
    """

    def __init__(
        self,
        input_channels: int,
        output_channels: int,
        experts: int,
        *,
        kernel_size: tuple[int, ...],
        input_size: tuple[int, ...],
        stride: int = 1,
        padding: int = 0,
        dilation: int = 1,
        gate_activation: Activation | None = softmax_over_experts,
        expert_activation: Activation = relu,
        expert_bias: bool = True,
        gate_bias: bool = True,
        gate_each_output: bool = True,
    ) -> None:
        """`kernel_size` and `input_size`, without channels, have a number for each dimension."""
        if len(kernel_size) not in CONVOLUTIONS or len(kernel_size) != len(input_size):
            raise ValueError(
                "kernel and input have the same 1, 2 or 3 dimensions; "
                f"got a kernel of {kernel_size} for inputs of {input_size}"
            )
        super().__init__(
            experts=experts,
            outputs=output_channels,
            expert_shape=(input_channels, *kernel_size),
            input_numbers=input_channels * math.prod(input_size),
            gate_activation=gate_activation,
            expert_activation=expert_activation,
            expert_bias=expert_bias,
            gate_bias=gate_bias,
            gate_each_output=gate_each_output,
        )
        self._convolve = CONVOLUTIONS[len(kernel_size)]
        self.stride, self.padding, self.dilation = stride, padding, dilation

    def expert_scores(self, inputs: Tensor) -> Tensor:
        """N x K x O x positions of inputs N x channels x positions: all experts' filters as one convolution."""
        bias_KO = None if self.expert_bias_KO is None else self.expert_bias_KO.flatten()
        filters = self.expert_weights.flatten(0, 1)
        scores = self._convolve(inputs, filters, bias_KO, self.stride, self.padding, self.dilation)
        return scores.unflatten(1, (self.experts, self.outputs))

    def forward(self, inputs: Tensor) -> Tensor:
        """Outputs N x O x positions of inputs N x channels x positions."""
        return self.mix(inputs)


def _glorot(weights: Tensor, fans: int, generator: torch.Generator | None) -> None:
    """Uniform within +-sqrt(6 / fans), fans being how many numbers go in and out."""
    limit = math.sqrt(6 / fans)
    weights.uniform_(-limit, limit, generator=generator)
