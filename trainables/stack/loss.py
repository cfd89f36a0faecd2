"""The chunked cross-entropy of `trainables.output_layers.cross_entropy` for all models of a stack:
by kernels at once, and without them, where a chunk is best as large as a processor's cache, one
model after another.

Rows of a model beyond its own window weigh nothing. Shapes: G models, N rows (contexts) of the
longest window, K experts, D width, V vocabulary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from trainables.output_layers import (
    Inputs,
    Models,
    PiecewiseLinear,
    Pointwise,
    chunked_cross_entropy,
    fused_cross_entropy,
    kernels_fit,
)


def stacked_cross_entropy(
    hidden_GNKD: Tensor,
    log_prior_GNK: Tensor,
    weight_GVD: Tensor,
    bias_GV: Tensor,
    rows: tuple[Tensor, Tensor],
    functions: Sequence[Pointwise],
    parameters: Sequence[Tensor],
) -> Tensor:
    """Every model's mean over its rows of -log P(target) in nats, G; see `linear_cross_entropy`.

    `rows` are the targets, G x N, and what every row weighs in its model's mean: 1 over their
    count, or 0. `parameters` are those of the functions, with a leading G. The matrix products are
    in the dtype of the hidden states. The way back assumes loss gradients of 1: differentiate the
    sum of the losses, or that sum plus other terms."""
    inputs = Models(hidden_GNKD, log_prior_GNK, weight_GVD, bias_GV)
    if not torch.is_grad_enabled():
        return _losses(inputs, rows, functions, parameters, None)[0]
    apply: Callable[..., Tensor] = _StackedCrossEntropy.apply
    return apply(*inputs, rows, functions, *parameters)


class _StackedCrossEntropy(torch.autograd.Function):
    """The gradients are computed in the forward pass, for loss gradients of 1; backward hands them
    on."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        prior: Tensor,
        weight: Tensor,
        bias: Tensor,
        rows: tuple[Tensor, Tensor],
        functions: Sequence[Pointwise],
        *parameters: Tensor,
    ) -> Tensor:
        inputs = Models(hidden, prior, weight, bias)
        # Kernels overwrite the gradient by the weights; chunks without them add to it.
        of_weight = torch.empty_like if kernels_fit(functions, weight) else torch.zeros_like
        makes = torch.empty_like, torch.empty_like, of_weight, torch.zeros_like
        new = [
            make(t, memory_format=torch.contiguous_format)
            for make, t in zip(makes, inputs, strict=True)
        ]
        gradients = Models(*new)
        losses_G, by_parameters = _losses(inputs, rows, functions, parameters, gradients)
        ctx.save_for_backward(*gradients, *by_parameters)
        return losses_G

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _by_losses_G: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.saved_tensors
        return (*gradients[:4], None, None, *gradients[4:])


def _losses(
    inputs: Models,
    rows: tuple[Tensor, Tensor],
    functions: Sequence[Pointwise],
    parameters: Sequence[Tensor],
    gradients: Models | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The losses, and their gradients by the functions' parameters; the others go into
    `gradients`."""
    dtype = inputs.weight_GVD.dtype
    if kernels_fit(functions, inputs.weight_GVD):
        losses_G, by_parameters = fused_cross_entropy(
            inputs, rows, functions, parameters, gradients
        )
        return losses_G.to(dtype), by_parameters
    losses, by_function = list[Tensor](), list[tuple[Tensor, ...]]()
    for g, function in enumerate(functions):
        chunk_pass = (
            partial(function.chunk_pass, weight_K=parameters[0][g])
            if isinstance(function, PiecewiseLinear)
            else function.chunk_pass
        )
        loss, by = chunked_cross_entropy(
            Inputs(*(tensor[g] for tensor in inputs)),
            (rows[0][g], rows[1][g]),
            chunk_pass,
            None if gradients is None else Inputs(*(tensor[g] for tensor in gradients)),
        )
        losses.append(loss)
        by_function.append(by)
    return torch.stack(losses).to(dtype), tuple(
        torch.stack(same) for same in zip(*by_function, strict=True)
    )
