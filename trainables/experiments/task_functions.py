"""Invented functions for a small network to learn: each is drawn from a seed, known exactly, and free of noise, so that
the least possible error is 0.

- `regions`: eight linear maps; the map that is applied is the one whose score, a linear function of the input, is the
  largest. It jumps at the borders. Made like a mixture of linear experts with hard gates.
- `wide`: one hidden layer of 64 relu units: a function that a dense layer of as many units can be.
- `deep`: three hidden layers of 64 relu units: like none of the layers that are compared.

None has biases. Inputs are standard normal; outputs are scaled to variance 1 over a sample of inputs.

Dimensions: N examples, I input width, O outputs, R regions, H hidden units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from trainables.config import LayerTaskConfig
from trainables.draws import stream

REGIONS, HIDDEN, DEPTH = 8, 64, 3
SCALE_EXAMPLES = 10_000
"""How many inputs an output's variance is taken over."""

TASK, WEIGHTS, BATCHES = 0, 1, 2
"""Streams of random numbers of a trial: the function with its examples, the weights at the start, the batches."""

Function = Callable[[Tensor], Tensor]
"""From inputs N x I to outputs N x O."""


@dataclass(frozen=True, kw_only=True)
class Examples:
    """Inputs and the function's values at them."""

    inputs_NI: Tensor
    targets_NO: Tensor


@dataclass(frozen=True, kw_only=True)
class Task:
    """One function and three independent samples of it."""

    train: Examples
    valid: Examples
    test: Examples


def make_task(config: LayerTaskConfig) -> Task:
    """The task of this name and seed, in float32; the same for every layer that learns it."""
    generator = stream(config.seed, TASK)
    function = _scaled(make_function(config, generator), config.input_width, generator)
    sizes = (config.train_examples, config.valid_examples, config.test_examples)
    train, valid, test = (_sample(function, size, config.input_width, generator) for size in sizes)
    return Task(train=train, valid=valid, test=test)


def make_function(config: LayerTaskConfig, generator: torch.Generator) -> Function:
    """Draw the function, its outputs not yet scaled. Weights are normal with variance 2 / fan-in before a relu, and
    1 / fan-in elsewhere."""
    width, outputs = config.input_width, config.outputs
    if config.task == "regions":
        scores_RI = _normal((REGIONS, width), 1.0, generator)
        maps_ROI = _normal((REGIONS, outputs, width), 1.0, generator)

        def regions(inputs_NI: Tensor) -> Tensor:
            chosen_N = (inputs_NI @ scores_RI.T).argmax(dim=1)
            every_NRO = torch.einsum("roi,ni->nro", maps_ROI, inputs_NI)
            return every_NRO[torch.arange(len(inputs_NI)), chosen_N]

        return regions
    widths = [width] + [HIDDEN] * (DEPTH if config.task == "deep" else 1)
    layers = [_normal((out, into), 2.0, generator) for into, out in pairwise(widths)]
    last_OH = _normal((outputs, HIDDEN), 1.0, generator)

    def network(inputs_NI: Tensor) -> Tensor:
        hidden_NH = inputs_NI
        for weights_HH in layers:
            hidden_NH = (hidden_NH @ weights_HH.T).relu()
        return hidden_NH @ last_OH.T

    return network


def _normal(shape: tuple[int, ...], gain: float, generator: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=generator) * math.sqrt(gain / shape[-1])


def _scaled(function: Function, input_width: int, generator: torch.Generator) -> Function:
    sample_NO = function(torch.randn((SCALE_EXAMPLES, input_width), generator=generator))
    deviation_O = sample_NO.std(dim=0)
    return lambda inputs_NI: function(inputs_NI) / deviation_O


def _sample(function: Function, examples: int, input_width: int, generator: torch.Generator) -> Examples:
    inputs_NI = torch.randn((examples, input_width), generator=generator)
    return Examples(inputs_NI=inputs_NI, targets_NO=function(inputs_NI))
