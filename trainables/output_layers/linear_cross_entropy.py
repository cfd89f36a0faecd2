"""Cross-entropy of a pointwise-transformed linear layer, without ever holding the N x V logits.

The plain formulation materialises logits, their transform, log-probabilities and a gradient of each: five or more N x V
arrays that stream through memory. Here a chunk of rows goes through everything, forward and backward, while it is in
the processor's cache: logits, f and f', log-sum-exp, softmax, and three gradients, none of which needs other rows.

Shapes: N rows (contexts), D width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CPU_CHUNK_BYTES = 5 * 2**19
"""2.5 MiB: a chunk and its slopes stay in a core's share of the cache (benchmarks/loss.py compares sizes)."""
GPU_CHUNK_BYTES = 2**28
MIN_CHUNK_ROWS = 32


class Pointwise(Protocol):
    """An increasing function f, applied to every logit."""

    @property
    def is_identity(self) -> bool:
        """Whether f(x) = x, so that neither f nor its slope need be computed."""

    def value_and_slope_(self, logits_NV: Tensor, slope_NV: Tensor) -> None:
        """Overwrite `logits_NV` with f (up to a constant, which the softmax cancels) and `slope_NV` with f'."""


def chunk_rows(vocabulary_size: int, element_size: int, device: torch.device) -> int:
    """How many rows of logits to hold at a time."""
    budget = GPU_CHUNK_BYTES if device.type == "cuda" else CPU_CHUNK_BYTES
    return max(MIN_CHUNK_ROWS, budget // (vocabulary_size * element_size))


def linear_cross_entropy(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor,
    targets_N: Tensor,
    pointwise: Pointwise,
    *,
    rows_per_chunk: int | None = None,
) -> Tensor:
    """Mean over N of -log softmax(f(hidden @ weight.T + bias))[target], in nats; differentiable once.

    Raises ValueError where there is no row. Exact: equal to the plain formulation up to rounding.
    """
    if targets_N.numel() == 0:
        raise ValueError("the cross-entropy of no rows is undefined; pass at least one target")
    rows = rows_per_chunk or chunk_rows(weight_VD.shape[0], hidden_ND.element_size(), hidden_ND.device)
    wants_gradient = torch.is_grad_enabled() and any(t.requires_grad for t in (hidden_ND, weight_VD, bias_V))
    if not wants_gradient:
        return _forward(hidden_ND, weight_VD, bias_V, targets_N, pointwise, rows, None)
    apply: Callable[..., Tensor] = _LinearCrossEntropy.apply
    return apply(hidden_ND, weight_VD, bias_V, targets_N, pointwise, rows)


class _LinearCrossEntropy(torch.autograd.Function):
    """The gradients are computed in the forward pass, for a loss gradient of 1; backward only scales them."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, pointwise: Pointwise, rows: int
    ) -> Tensor:
        gradients = (torch.empty_like(hidden), torch.zeros_like(weight), torch.zeros_like(bias))
        loss = _forward(hidden, weight, bias, targets, pointwise, rows, gradients)
        ctx.save_for_backward(*gradients)
        return loss

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor) -> tuple[Tensor | None, ...]:
        gradients = [gradient * grad_loss for gradient in ctx.saved_tensors]
        return (*gradients, None, None, None)


def _forward(
    hidden_ND: Tensor,
    weight_VD: Tensor,
    bias_V: Tensor,
    targets_N: Tensor,
    pointwise: Pointwise,
    rows: int,
    gradients: tuple[Tensor, Tensor, Tensor] | None,
) -> Tensor:
    total_rows, vocabulary_size = hidden_ND.shape[0], weight_VD.shape[0]
    # Of one size whatever the window's length: buffers of ever new sizes fragment the heap over hours of training.
    logits_buffer = hidden_ND.new_empty(rows, vocabulary_size)
    slope_buffer = logits_buffer if pointwise.is_identity else torch.empty_like(logits_buffer)
    loss = torch.zeros((), dtype=torch.float64, device=hidden_ND.device)
    for start in range(0, total_rows, rows):
        hidden = hidden_ND[start : start + rows]
        targets = targets_N[start : start + rows, None]
        logits, slope = logits_buffer[: len(hidden)], slope_buffer[: len(hidden)]
        torch.addmm(bias_V, hidden, weight_VD.t(), out=logits)
        if not pointwise.is_identity:
            pointwise.value_and_slope_(logits, slope)
        logits.sub_(logits.amax(1, keepdim=True))
        target_logits = logits.gather(1, targets)
        normaliser = logits.exp_().sum(1, keepdim=True)
        loss += (normaliser.log() - target_logits).sum(dtype=torch.float64)
        if gradients is not None:
            # The gradient of a row's loss by its logits is (softmax - one at the target) * f', here over N rows.
            logits.mul_((normaliser * total_rows).reciprocal_())
            logits.scatter_add_(1, targets, torch.full_like(target_logits, -1.0 / total_rows))
            if not pointwise.is_identity:
                logits.mul_(slope)
            grad_hidden, grad_weight, grad_bias = gradients
            torch.mm(logits, weight_VD, out=grad_hidden[start : start + rows])
            grad_weight.addmm_(logits.t(), hidden)
            grad_bias.add_(logits.sum(0))
    return (loss / total_rows).to(hidden_ND.dtype)
