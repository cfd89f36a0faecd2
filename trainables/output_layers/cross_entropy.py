"""Cross-entropy of a linear layer, or of a mixture of them, without ever holding the N x K x V logits.

The plain formulation materialises logits, their transform, (log-)probabilities and a gradient of each: five or more
N x K x V arrays that stream through memory. Here a chunk of rows goes through everything, forward and backward, while
it is in the processor's cache: logits, f, log-sum-exp, softmax and all gradients, none of which needs other rows.

A mixture's loss needs of each expert only its log-sum-exp and its logit of the target,

    log P(y) = logsumexp_k(log pi_k + x_k[y] - logsumexp(x_k)),

and its gradient is each expert's own, (softmax(x_k) - one at y), weighted by the expert's responsibility for y,
r_k = P(k | y) = exp(log pi_k + x_k[y] - logsumexp(x_k) - log P(y)). No probability is formed whose log is taken.

Shapes: N rows (contexts), K experts (1 without a mixture), D width, V vocabulary; n rows and nK logit rows in a chunk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from trainables.config import chunk_rows
from trainables.output_layers.pointwise import Pointwise


def linear_cross_entropy(
    hidden: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor,
    targets_N: Tensor,
    function: Pointwise,
    *,
    log_prior_NK: Tensor | None = None,
) -> Tensor:
    """Mean over N of -log P(target) in nats, with P = sum_k pi_k softmax(f(hidden_k @ weight.T + bias)).

    `hidden` is N x D, or with `log_prior_NK` (the log of pi) N x K x D. Equal to the plain formulation up to rounding;
    differentiable once. Inside autocast the matrix products are in its dtype, all sums in float32. Raises ValueError
    where there is no row.
    """
    if targets_N.numel() == 0:
        raise ValueError("the cross-entropy of no rows is undefined; pass at least one target")
    hidden_NKD = hidden.unsqueeze(1) if log_prior_NK is None else hidden
    prior = hidden_NKD.new_zeros(hidden_NKD.shape[:2]) if log_prior_NK is None else log_prior_NK
    arguments = (hidden_NKD, prior, weight_VD, bias_V, targets_N, function)
    trained = (hidden, prior, weight_VD, bias_V, *function.parameters())
    if not (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in trained)):
        return _forward(*arguments, gradients=None)
    apply: Callable[..., Tensor] = _LinearCrossEntropy.apply
    return apply(*arguments, *function.parameters())


class _LinearCrossEntropy(torch.autograd.Function):
    """The gradients are computed in the forward pass, for a loss gradient of 1; backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        prior: Tensor,
        weight: Tensor,
        bias: Tensor,
        targets: Tensor,
        function: Pointwise,
        *parameters: Tensor,
    ) -> Tensor:
        del parameters  # the function's own; named here so that autograd passes their gradients on
        gradients = _Gradients(
            hidden=torch.empty_like(hidden, memory_format=torch.contiguous_format),
            prior=torch.empty_like(prior, memory_format=torch.contiguous_format),
            weight=torch.zeros_like(weight),
            bias=torch.zeros_like(bias),
        )
        loss = _forward(hidden, prior, weight, bias, targets, function, gradients=gradients)
        ctx.save_for_backward(
            gradients.hidden, gradients.prior, gradients.weight, gradients.bias, *gradients.by_parameters
        )
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        hidden, prior, weight, bias, *by_parameters = (gradient * grad_loss for gradient in ctx.saved_tensors)
        return (hidden, prior, weight, bias, None, None, *by_parameters)


@dataclass(kw_only=True)
class _Gradients:
    """Of the mean loss, by each input."""

    hidden: Tensor
    prior: Tensor
    weight: Tensor
    bias: Tensor
    by_parameters: tuple[Tensor, ...] = ()


def _forward(
    hidden_NKD: Tensor,
    log_prior_NK: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor,
    targets_N: Tensor,
    function: Pointwise,
    *,
    gradients: _Gradients | None,
) -> Tensor:
    device = weight_VD.device
    autocast = torch.is_autocast_enabled(device.type)
    factor_dtype = torch.get_autocast_dtype(device.type) if autocast else weight_VD.dtype
    total, experts, width = hidden_NKD.shape
    rows = chunk_rows(len(weight_VD), weight_VD.shape[1], weight_VD.element_size(), device.type)
    contexts = max(1, rows // experts)  # a context's experts stay together
    # Of one size whatever the window's length: buffers of ever new sizes fragment the heap over hours of training.
    buffer = weight_VD.new_empty(contexts * experts, len(weight_VD))
    loss = torch.zeros((), dtype=torch.float64, device=device)
    with torch.autocast(device.type, enabled=False):
        chunk_pass = function.chunk_pass(buffer)
        factor_VD = weight_VD.to(factor_dtype)
        for start in range(0, total, contexts):
            chunk = slice(start, min(start + contexts, total))
            hidden = hidden_NKD[chunk].reshape(-1, width).to(factor_dtype)
            logits, targets = buffer[: len(hidden)], targets_N[chunk].repeat_interleave(experts)[:, None]
            _multiply(hidden, factor_VD, bias_V, out=logits)
            chunk_pass.apply_(logits)
            logits.sub_(logits.amax(1, keepdim=True))
            target_logits = logits.gather(1, targets)
            normaliser = logits.exp_().sum(1, keepdim=True)
            joint_nK = log_prior_NK[chunk].to(logits.dtype) + (target_logits - normaliser.log()).view(-1, experts)
            log_p_n1 = joint_nK.logsumexp(1, keepdim=True)
            loss -= log_p_n1.sum(dtype=torch.float64)
            if gradients is not None:
                responsibility_nK = (joint_nK - log_p_n1).exp_().div_(total)
                gradients.prior[chunk] = -responsibility_nK
                column = responsibility_nK.view(-1, 1)
                logits.mul_(column / normaliser)
                logits.scatter_add_(1, targets, -column)
                chunk_pass.pull_back_(logits)
                _add_gradients(gradients, chunk, logits, hidden, factor_VD)
        if gradients is not None:
            gradients.by_parameters = chunk_pass.gradients()
    return (loss / total).to(weight_VD.dtype)


def _multiply(hidden: Tensor, factor_VD: Tensor, bias_V: Tensor, *, out: Tensor) -> None:
    if factor_VD.dtype == out.dtype:
        torch.addmm(bias_V, hidden, factor_VD.t(), out=out)
    else:
        out.copy_(hidden @ factor_VD.t()).add_(bias_V)


def _add_gradients(gradients: _Gradients, chunk: slice, logits: Tensor, hidden: Tensor, factor_VD: Tensor) -> None:
    """From a chunk's gradient by its logits to those by hidden states, weights and bias."""
    gradients.bias.add_(logits.sum(0))
    out = gradients.hidden[chunk].view(hidden.shape)
    if factor_VD.dtype == logits.dtype == out.dtype:
        torch.mm(logits, factor_VD, out=out)
        gradients.weight.addmm_(logits.t(), hidden)
    else:
        factor = logits.to(factor_VD.dtype)
        out.copy_(factor @ factor_VD)
        gradients.weight.add_(factor.t() @ hidden)
