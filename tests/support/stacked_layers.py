"""An LSTM layer of three models whose windows differ in length, and the framework's own for each in
float64."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trainables.stack.lstm import LstmWeights, StackedState, stacked_lstm

LENGTHS = (5, 7, 1)


@dataclass(frozen=True)
class Layer:
    """What one call takes, and the gradient by its outputs, which is 0 after the end of a
    window."""

    inputs_GTBI: Tensor
    state: StackedState
    weights: LstmWeights
    by_outputs: Tensor

    def to(self, device: str, dtype: torch.dtype) -> Layer:
        inputs, h, c, by_outputs, *weights = (
            tensor.to(device, dtype)
            for tensor in (self.inputs_GTBI, *self.state, self.by_outputs, *_all(self.weights))
        )
        return Layer(inputs, StackedState(h, c), LstmWeights(*weights), by_outputs)


def _all(weights: LstmWeights) -> list[Tensor]:
    return [weight for weight in weights if weight is not None]


def layer(batch: int, inputs: int, width: int, scale: float = 1.0, seed: int = 0) -> Layer:
    """Drawn in float32; gates' sums are of the order of `scale`."""
    draw = torch.Generator().manual_seed(seed)
    models, steps = len(LENGTHS), max(LENGTHS)

    def normal(*shape: int) -> Tensor:
        return torch.randn(models, *shape, generator=draw)

    state = StackedState(normal(batch, width).tanh(), normal(batch, width))
    of_window = torch.arange(steps) < torch.tensor(LENGTHS)[:, None]
    by_outputs = normal(steps, batch, width) * of_window[:, :, None, None]
    ih, hh = (scale * normal(4 * width, into) / into**0.5 for into in (inputs, width))
    kept = 2.0 * torch.randint(2, hh.shape, generator=draw)
    weights = LstmWeights(ih, hh, normal(4 * width), normal(4 * width), kept)
    return Layer(normal(steps, batch, inputs), state, weights, by_outputs)


def _leaves(layer: Layer) -> list[Tensor]:
    """By which there are gradients."""
    return [
        tensor.detach().clone().requires_grad_()
        for tensor in (layer.inputs_GTBI, *layer.weights[:4])
    ]


def results(layer: Layer, dtype: torch.dtype | None = None) -> list[Tensor]:
    """h and c after the windows, outputs, the gradients by the inputs and the weights; in float64
    on the CPU. The products are in this dtype, by default that of the layer."""
    inputs, *weights = leaves = _leaves(layer)
    lengths_G = torch.tensor(LENGTHS, device=inputs.device)
    masked = LstmWeights(*weights)._replace(kept_hh=layer.weights.kept_hh)
    outputs, state = stacked_lstm(inputs, layer.state, masked, lengths_G, dtype or inputs.dtype)
    # After the end of a window, outputs have no meaning.
    kept = outputs.detach() * (layer.by_outputs != 0)
    gradients = torch.autograd.grad((outputs * layer.by_outputs).sum(), leaves)
    return [tensor.detach().double().cpu() for tensor in (*state, kept, *gradients)]


def true_results(layer: Layer) -> list[Tensor]:
    """The same by the framework, one model after another."""
    layer = layer.to("cpu", torch.float64)
    inputs, ih, hh, *biases = leaves = _leaves(layer)
    assert layer.weights.kept_hh is not None
    weights = [ih, hh * layer.weights.kept_hh, *biases]
    outputs, states = torch.zeros_like(layer.by_outputs), list[tuple[Tensor, Tensor]]()
    for g, length in enumerate(LENGTHS):
        before = (layer.state.h[g : g + 1], layer.state.c[g : g + 1])
        of_model = [weight[g] for weight in weights]
        outputs_TBH, h, c = torch.lstm(
            inputs[g, :length], before, of_model, True, 1, 0.0, True, False, False
        )
        outputs[g, :length] = outputs_TBH
        states.append((h, c))
    h, c = (torch.cat(of_models).detach() for of_models in zip(*states, strict=True))
    gradients = torch.autograd.grad((outputs * layer.by_outputs).sum(), leaves)
    return [h, c, outputs.detach(), *gradients]
