"""Cross-entropy of whole target distributions under an output layer, with its gradients in closed form.

A language model's loss knows one true word a context; here each context has a distribution P* over all outcomes. For
logits y = f(x), x = W h + b, the loss of a context is logsumexp(y) - sum_v P*(v) y(v), and its gradient by the logits

    (softmax(y) - P*) f'(x).

Of a mixture, P(v) = sum_k pi_k p_k(v), each expert answers for its share r_k(v) = pi_k p_k(v) / P(v) of every outcome.
With a_k(v) = P*(v) r_k(v) and A_k = sum_v a_k(v), the gradients are (A_k p_k - a_k) f'(x_k), and -A_k by log pi_k.

Shapes: N contexts, K experts (1 without a mixture), D width, V outcomes; n contexts in a chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from trainables.config import chunk_rows
from trainables.output_layers import MixtureOfSoftmaxes, OutputLayer, Pointwise, PointwiseSoftmax


def soft_cross_entropy(layer: OutputLayer, hidden_ND: Tensor, weight_VD: Tensor, targets_NV: Tensor) -> Tensor:
    """Mean over N of -sum_v P*(v) log P(v) in nats, float64; differentiable once.

    Rows of `targets_NV` sum to 1. In closed form for functions of one logit and mixtures of softmaxes; any other layer
    goes through autograd.
    """
    apply: Callable[..., Tensor] = _SoftCrossEntropy.apply
    if isinstance(layer, PointwiseSoftmax):
        hidden_NKD = hidden_ND.unsqueeze(1)
        log_prior_NK = hidden_ND.new_zeros(len(hidden_ND), 1)
    elif isinstance(layer, MixtureOfSoftmaxes):
        hidden_NKD, log_prior_NK = layer.latent(hidden_ND.unsqueeze(1)), layer.log_prior(hidden_ND)
    else:
        log_p_NV = layer.log_probabilities(hidden_ND, weight_VD)
        return -(targets_NV * log_p_NV).sum(dtype=torch.float64) / len(targets_NV)
    function = layer.function
    arguments = (hidden_NKD, log_prior_NK, weight_VD, layer.bias_V, targets_NV, function)
    return apply(*arguments, *function.parameters())


class _SoftCrossEntropy(torch.autograd.Function):
    """The gradients are computed in the forward pass, for a loss gradient of 1; backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        log_prior: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        function: Pointwise,
        *parameters: Tensor,
    ) -> Tensor:
        del parameters  # the function's own; named here so that autograd passes their gradients on
        total, experts, width = hidden.shape
        by_hidden, by_prior = (
            torch.empty_like(hidden, memory_format=torch.contiguous_format),
            torch.empty_like(log_prior),
        )
        by_weight, by_bias = torch.zeros_like(weight), torch.zeros_like(bias)
        contexts = max(1, chunk_rows(len(weight), width, weight.element_size(), weight.device.type) // experts)
        buffer = weight.new_empty(min(contexts, total) * experts, len(weight))
        chunk_pass = function.chunk_pass(buffer)
        loss = torch.zeros((), dtype=torch.float64, device=weight.device)
        for start in range(0, total, contexts):
            chunk = slice(start, min(start + contexts, total))
            rows = hidden[chunk].reshape(-1, width)
            logits = buffer[: len(rows)]
            torch.addmm(bias, rows, weight.t(), out=logits)
            chunk_pass.apply_(logits)
            if experts == 1:
                losses_n = _softmax_loss_(logits, targets[chunk])
                by_prior[chunk] = -1.0
            else:
                losses_n, by_prior[chunk] = _mixture_loss_(logits, log_prior[chunk], targets[chunk])
            loss += losses_n.sum(dtype=torch.float64)
            chunk_pass.pull_back_(logits)
            by_bias.add_(logits.sum(0))
            torch.mm(logits, weight, out=by_hidden[chunk].view(rows.shape))
            by_weight.addmm_(logits.t(), rows)
        ctx.save_for_backward(by_hidden, by_prior, by_weight, by_bias, *chunk_pass.gradients())
        ctx.contexts = total
        return loss / total

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        scale = grad_loss / ctx.contexts
        hidden, prior, weight, bias, *by_parameters = (
            gradient * scale.to(gradient.dtype) for gradient in ctx.saved_tensors
        )
        return (hidden, prior, weight, bias, None, None, *by_parameters)


def _softmax_loss_(logits_nV: Tensor, targets_nV: Tensor) -> Tensor:
    """Each context's loss; overwrites the logits with the gradient by them, softmax less target."""
    logits_nV.sub_(logits_nV.amax(1, keepdim=True))
    expected_n = torch.linalg.vecdot(logits_nV, targets_nV)
    normaliser_n1 = logits_nV.exp_().sum(1, keepdim=True)
    logits_nV.div_(normaliser_n1).sub_(targets_nV)
    return normaliser_n1.squeeze(1).log() - expected_n


def _mixture_loss_(logits: Tensor, log_prior_nK: Tensor, targets_nV: Tensor) -> tuple[Tensor, Tensor]:
    """Each context's loss and its gradient by log pi; overwrites the (n K) x V logits with the gradient by them."""
    logits_nKV = logits.view(*log_prior_nK.shape, -1)
    logits_nKV.sub_(logits_nKV.amax(2, keepdim=True))
    experts_nKV = logits_nKV.exp()
    normaliser_nK1 = experts_nKV.sum(2, keepdim=True)
    experts_nKV.div_(normaliser_nK1)
    joint_nKV = logits_nKV.add_(log_prior_nK.unsqueeze(2) - normaliser_nK1.log())
    greatest_nV = joint_nKV.amax(1)
    share_nKV = joint_nKV.sub_(greatest_nV.unsqueeze(1)).exp_()
    sum_nV = share_nKV.sum(1)
    share_nKV.mul_((targets_nV / sum_nV).unsqueeze(1))
    total_nK1 = share_nKV.sum(2, keepdim=True)
    losses_n = -torch.linalg.vecdot(sum_nV.log_().add_(greatest_nV), targets_nV)
    torch.addcmul(share_nKV.neg_(), total_nK1, experts_nKV, out=share_nKV)
    return losses_n, -total_nK1.squeeze(2)
