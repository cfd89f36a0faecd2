"""The chunked cross-entropy of `trainables.output_layers.cross_entropy` for all models of a stack at once.

Rows of a model beyond its own window weigh nothing. Shapes: G models, N rows (contexts) of the longest window, K
experts, D width, V vocabulary; n rows and m = n K logit rows of a chunk.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from trainables.config import chunk_rows
from trainables.output_layers import Models, Pointwise, fused_cross_entropy, kernels_fit
from trainables.stack.bends import StackedPass, stacked_pass


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

    `rows` are the targets, G x N, and what every row weighs in its model's mean: 1 over their count, or 0. `parameters`
    are those of the functions, with a leading G. The matrix products are in the dtype of the hidden states.
    """
    inputs = Models(hidden_GNKD, log_prior_GNK, weight_GVD, bias_GV)
    if not torch.is_grad_enabled():
        return _losses(inputs, rows, functions, parameters, None)[0]
    apply: Callable[..., Tensor] = _StackedCrossEntropy.apply
    return apply(*inputs, rows, functions, *parameters)


class _StackedCrossEntropy(torch.autograd.Function):
    """The gradients are computed in the forward pass, for loss gradients of 1; backward only scales them."""

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
        gradients = Models(*map(torch.empty_like, inputs[:2]), *map(torch.zeros_like, inputs[2:]))
        losses_G, by_parameters = _losses(inputs, rows, functions, parameters, gradients)
        ctx.save_for_backward(*gradients, *by_parameters)
        return losses_G

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_losses_G: Tensor) -> tuple[Tensor | None, ...]:
        scaled = [
            gradient * by_losses_G.view(-1, *[1] * (gradient.dim() - 1)).to(gradient.dtype)
            for gradient in ctx.saved_tensors
        ]
        return (*scaled[:4], None, None, *scaled[4:])


def _losses(
    inputs: Models,
    rows: tuple[Tensor, Tensor],
    functions: Sequence[Pointwise],
    parameters: Sequence[Tensor],
    gradients: Models | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """The losses, and their gradients by the functions' parameters; the others go into `gradients`."""
    weight = inputs.weight_GVD
    if kernels_fit(functions, weight):
        losses_G, by_parameters = fused_cross_entropy(inputs, rows, functions, parameters, gradients)
        return losses_G.to(weight.dtype), by_parameters
    chunk_pass = stacked_pass(functions, parameters, weight)
    losses_G = _all_chunks(inputs, rows, chunk_pass, gradients)
    return losses_G.to(weight.dtype), chunk_pass.gradients()


def _all_chunks(
    inputs: Models,
    rows: tuple[Tensor, Tensor],
    chunk_pass: StackedPass,
    gradients: Models | None,
) -> Tensor:
    """The losses in float64; the gradients by the inputs are written to `gradients`, where they are wanted."""
    hidden_GNKD, log_prior_GNK, weight_GVD, bias_GV = inputs
    targets_GN, weights_GN = rows
    models, total, experts, width = hidden_GNKD.shape
    factor_GVD, element = weight_GVD.to(hidden_GNKD.dtype), weight_GVD.element_size()
    contexts = chunk_rows(weight_GVD.shape[1], width, element, weight_GVD.device.type) // (models * experts)
    losses_G = torch.zeros(models, dtype=torch.float64, device=weight_GVD.device)
    for start in range(0, total, max(1, contexts)):
        chunk = slice(start, min(start + max(1, contexts), total))
        hidden = hidden_GNKD[:, chunk].reshape(models, -1, width)
        logits = _logits(hidden, factor_GVD, bias_GV.unsqueeze(1))
        chunk_pass.apply_(logits)
        losses_Gn, by_prior_GnK = _losses_(logits, log_prior_GNK[:, chunk], targets_GN[:, chunk], weights_GN[:, chunk])
        losses_G += losses_Gn.sum(1, dtype=torch.float64)
        if gradients is None:
            continue
        by_hidden, by_prior, by_weight, by_bias = gradients
        by_prior[:, chunk] = by_prior_GnK
        chunk_pass.pull_back_(logits)
        by_bias.add_(logits.sum(1))
        by_logits = logits.to(factor_GVD.dtype)
        by_hidden[:, chunk] = torch.bmm(by_logits, factor_GVD).view(models, -1, experts, width)
        if by_weight.dtype == by_logits.dtype:
            by_weight.baddbmm_(by_logits.mT, hidden)
        else:
            by_weight.add_(torch.bmm(by_logits.mT, hidden))
    return losses_G


def _logits(hidden_GmD: Tensor, factor_GVD: Tensor, bias_G1V: Tensor) -> Tensor:
    if factor_GVD.dtype == bias_G1V.dtype:
        return torch.baddbmm(bias_G1V, hidden_GmD, factor_GVD.mT)
    return torch.bmm(hidden_GmD, factor_GVD.mT) + bias_G1V


def _losses_(logits: Tensor, log_prior_GnK: Tensor, targets_Gn: Tensor, weights_Gn: Tensor) -> tuple[Tensor, Tensor]:
    """Every row's share of its model's mean, and the gradient by log pi; overwrites the G x m x V logits with the
    gradient by them."""
    experts = log_prior_GnK.shape[2]
    targets = targets_Gn.repeat_interleave(experts, 1).unsqueeze(2)
    logits.sub_(logits.amax(2, keepdim=True))
    target_logits = logits.gather(2, targets)
    normaliser = logits.exp_().sum(2, keepdim=True)
    joint_GnK = log_prior_GnK + (target_logits - normaliser.log()).view(log_prior_GnK.shape)
    log_p_Gn1 = joint_GnK.logsumexp(2, keepdim=True)
    responsibility_GnK = (joint_GnK - log_p_Gn1).exp_().mul_(weights_Gn.unsqueeze(2))
    column = responsibility_GnK.reshape(len(logits), -1, 1)
    logits.mul_(column / normaliser)
    logits.scatter_add_(2, targets, -column)
    return -log_p_Gn1.squeeze(2) * weights_Gn, -responsibility_GnK
