"""Test how well a network with one hidden layer learns a random function.

The seed draws the function, without noise, so the lowest possible error is 0.

- `regions`: eight linear maps with a linear score each. The map with the largest score applies, so
  the function jumps between regions.
- `wide`: one hidden layer of 64 relu units, which an equally wide dense layer can represent.
- `deep`: three hidden layers of 64 relu units, unlike any of the compared layers.
- `images`: two layers of 16 convolutions with relu, the mean over pixels, and a linear map. Inputs
  are images of 8 x 8 pixels.

Weights of convolutions are Glorot-uniform. No function has biases. Inputs are standard normal;
outputs are scaled to variance 1 over a sample.

Shapes: N examples, I input width, O outputs, R regions, H hidden units.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trainables.config import LAYER_TASK, PIXELS, ConvolutionLayerConfig, LayerTaskConfig
from trainables.draws import stream
from trainables.experiments.mixture_of_experts import make_layer
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.training import DivergedError
from trainables.trial_folder import Measured

REGIONS, HIDDEN, DEPTH, FILTERS = 8, 64, 3, 16
SCALE_EXAMPLES = 10_000

TASK, WEIGHTS, BATCHES = 0, 1, 2


class Examples(NamedTuple):
    """Inputs, and the outputs of the function that the network learns."""

    inputs_NI: Tensor
    targets_NO: Tensor


Task = tuple[Examples, Examples, Examples]
"""Examples for training, validation and test, drawn independently."""


def measure(config: LayerTaskConfig, runtime: Runtime) -> dict[str, Measured]:
    """Train once per learning rate; return the metrics of the run with the lowest validation error.

    Runs share initial weights and batches. Errors are mean squared errors in percent of the target
    variance: 0 for a perfect network, 100 for one that always returns the mean. Raises
    DivergedError if no rate gives finite errors.
    """
    task = make_task(config, runtime.device)
    fits = [_fit(config, rate, task, runtime.device) for rate in config.learning_rates]
    finite_fits = [fit for fit in fits if all(map(math.isfinite, fit.values()))]
    if not finite_fits:
        raise DivergedError(
            f"the errors are not finite at any of the learning rates {config.learning_rates}"
        )
    best_fit = min(finite_fits, key=lambda fit: fit["validation_error_percent"])
    return {LAYER_TASK: Measured({**best_fit})}


def make_task(config: LayerTaskConfig, device: str = "cpu") -> Task:
    """Return the examples for a config's seed, in float32; they are the same for all layers."""
    generator = stream(config.seed, TASK)
    function = make_function(config, generator)

    def sample(size: int) -> Examples:
        inputs_NI = torch.randn((size, config.input_width), generator=generator)
        return Examples(inputs_NI, function(inputs_NI))

    deviation_O = sample(SCALE_EXAMPLES).targets_NO.std(dim=0)
    sizes = (config.train_examples, config.valid_examples, config.test_examples)
    train, valid, test = (
        Examples(inputs_NI.to(device), (targets_NO / deviation_O).to(device))
        for inputs_NI, targets_NO in map(sample, sizes)
    )
    return train, valid, test


def make_function(
    config: LayerTaskConfig, generator: torch.Generator
) -> Callable[[Tensor], Tensor]:
    """Return a random function from N x I to N x O, not yet scaled.

    Weights of linear maps are normal, with variance 2 / fan-in before a relu and 1 / fan-in
    elsewhere.
    """

    def draw_weights(*shape: int, gain: float = 1.0) -> Tensor:
        return torch.randn(shape, generator=generator) * math.sqrt(gain / shape[-1])

    width, outputs = config.input_width, config.outputs
    if config.task == "regions":
        scores_RI, maps_ROI = draw_weights(REGIONS, width), draw_weights(REGIONS, outputs, width)

        def regions(inputs_NI: Tensor) -> Tensor:
            region_N = (inputs_NI @ scores_RI.T).argmax(dim=1)
            outputs_NRO = torch.einsum("roi,ni->nro", maps_ROI, inputs_NI)
            return outputs_NRO[torch.arange(len(inputs_NI)), region_N]

        return regions
    if config.task == "images":
        convolutions = nn.Sequential()
        for sizes in pairwise((width, FILTERS * PIXELS, FILTERS * PIXELS)):
            convolution = make_layer(ConvolutionLayerConfig(), *sizes, gate_bias=False)
            convolution.initialise(generator)
            convolutions.append(convolution.requires_grad_(False))
        last_OF = draw_weights(outputs, FILTERS)

        def images(inputs_NI: Tensor) -> Tensor:
            return convolutions(inputs_NI).unflatten(1, (FILTERS, -1)).mean(dim=2) @ last_OF.T

        return images
    widths = [width] + [HIDDEN] * (DEPTH if config.task == "deep" else 1)
    layers = [draw_weights(units, inputs, gain=2.0) for inputs, units in pairwise(widths)]
    last_OH = draw_weights(outputs, HIDDEN)

    def network(inputs_NI: Tensor) -> Tensor:
        hidden_NH = inputs_NI
        for weights_HH in layers:
            hidden_NH = (hidden_NH @ weights_HH.T).relu()
        return hidden_NH @ last_OH.T

    return network


def make_network(config: LayerTaskConfig, generator: torch.Generator) -> nn.Sequential:
    """Return a hidden and a linear output layer, both Glorot-uniform, with output biases 0."""
    hidden = make_layer(config.layer, config.input_width, config.width, gate_bias=True)
    hidden.initialise(generator)
    output = nn.Linear(config.width, config.outputs)
    nn.init.xavier_uniform_(output.weight, generator=generator)
    nn.init.zeros_(output.bias)
    return nn.Sequential(hidden, output)


def _fit(config: LayerTaskConfig, rate: float, task: Task, device: str) -> dict[str, float]:
    # Separate streams, so that a layer's size does not change the batches.
    weights, batches = stream(config.seed, WEIGHTS), stream(config.seed, BATCHES)
    network = make_network(config, weights).to(device)
    train, valid, test = task
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / config.steps)
    for _ in range(config.steps):
        PULSE.touch()
        indices_N = torch.randint(config.train_examples, (config.batch,), generator=batches).to(
            device
        )
        loss = nn.functional.mse_loss(
            network(train.inputs_NI[indices_N]), train.targets_NO[indices_N]
        )
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        decay.step()
    return {
        "test_error_percent": 100 * _error(network, test),
        "validation_error_percent": 100 * _error(network, valid),
        "train_error_percent": 100 * _error(network, train),
        "chosen_learning_rate": rate,
        "parameters": sum(parameter.numel() for parameter in network.parameters()),
    }


@torch.no_grad()
def _error(network: Callable[[Tensor], Tensor], examples: Examples) -> float:
    targets_NO = examples.targets_NO
    error_O = (network(examples.inputs_NI) - targets_NO).square().mean(dim=0)
    return float((error_O / targets_NO.var(dim=0, unbiased=False)).mean())
