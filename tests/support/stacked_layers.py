"""An LSTM layer of three models whose windows differ in length, and the framework's own for each in float64."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trainables.stack.lstm import StackedState, stacked_lstm

LENGTHS = (5, 7, 1)


@dataclass(frozen=True)
class Layer:
    """What one call takes, and the gradient by its outputs, which is 0 after the end of a window."""

    inputs_GTBI: Tensor
    state: StackedState
    weights: tuple[Tensor, Tensor, Tensor, Tensor]
    by_outputs: Tensor

    def to(self, device: str, dtype: torch.dtype) -> Layer:
        inputs, h, c, by_outputs, *weights = (
            tensor.to(device, dtype) for tensor in (self.inputs_GTBI, *self.state, self.by_outputs, *self.weights)
        )
        ih, hh, bias_ih, bias_hh = weights
        return Layer(inputs, StackedState(h, c), (ih, hh, bias_ih, bias_hh), by_outputs)


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
    return Layer(normal(steps, batch, inputs), state, (ih, hh, normal(4 * width), normal(4 * width)), by_outputs)


def results(layer: Layer) -> list[Tensor]:
    """h and c after the windows, outputs, the gradients by the inputs and the weights; in float64 on the CPU."""
    leaves = [tensor.detach().clone().requires_grad_() for tensor in (layer.inputs_GTBI, *layer.weights)]
    ih, hh, bias_ih, bias_hh = leaves[1:]
    lengths_G = torch.tensor(LENGTHS, device=leaves[0].device)
    outputs, state = stacked_lstm(leaves[0], layer.state, (ih, hh, bias_ih, bias_hh), lengths_G)
    # After the end of a window, outputs have no meaning.
    kept = outputs.detach() * (layer.by_outputs != 0)
    gradients = torch.autograd.grad((outputs * layer.by_outputs).sum(), leaves)
    return [tensor.detach().double().cpu() for tensor in (*state, kept, *gradients)]


def true_results(layer: Layer) -> list[Tensor]:
    """The same by the framework, one model after another."""
    layer = layer.to("cpu", torch.float64)
    leaves = [tensor.clone().requires_grad_() for tensor in (layer.inputs_GTBI, *layer.weights)]
    inputs, *weights = leaves
    outputs, states = torch.zeros_like(layer.by_outputs), list[tuple[Tensor, Tensor]]()
    for g, length in enumerate(LENGTHS):
        before = (layer.state.h[g : g + 1], layer.state.c[g : g + 1])
        of_model = [weight[g] for weight in weights]
        outputs_TBH, h, c = torch.lstm(inputs[g, :length], before, of_model, True, 1, 0.0, True, False, False)
        outputs[g, :length] = outputs_TBH
        states.append((h, c))
    h, c = (torch.cat(of_models).detach() for of_models in zip(*states, strict=True))
    gradients = torch.autograd.grad((outputs * layer.by_outputs).sum(), leaves)
    return [h, c, outputs.detach(), *gradients]
