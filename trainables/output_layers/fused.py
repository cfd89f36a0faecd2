"""Chunked cross-entropy of one or several models on a GPU: cuBLAS products and two kernels."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad

from trainables.device import add_batched_product_, aligned, runs_triton
from trainables.output_layers.gss import SmoothBend
from trainables.output_layers.plif import PiecewiseLinear
from trainables.output_layers.pointwise import Identity, Pointwise
from trainables.output_layers.softcap import Softcap

ALIGNMENT = 16
"""Rows of logits are padded to a multiple of this number, for tensor cores and wide reads."""
CHUNK_BYTES = 2**30
"""Bytes of logits per chunk. Small chunks are slow: each reads and writes the whole weight
gradient."""
UNIT = 2.0**-60
"""Unit of integer sums. Unlike float sums, they do not depend on the order of addition."""


class Bend(NamedTuple):
    """The functions f of all models, as the kernels read them. All have one kind."""

    kind: str
    """`identity`, `smooth`, `softcap` or `piecewise`."""
    table: Tensor
    """Parameters of f in float32. Smooth: G x 1 x 2, softcap: G x 2 x 2, piecewise: G x K x 2.
    Unused for the identity."""
    width: float = 1.0

    def arguments(self) -> tuple[Tensor, int, float, str]:
        """Return the arguments that describe f to the kernels."""
        return self.table, self.table.shape[1], 1 / self.width, self.kind


class IntervalSums(NamedTuple):
    """Sums over all chunks, from which the gradient of piecewise linear functions is computed.

    Each interval sums the gradient g by f, and g times the logit's position (0 at the left end, 1
    at the right). In the outer intervals, the position is unbounded.
    """

    inner_GK2: Tensor
    """Both sums in units of `UNIT`. The sum of |g| is at most 2, so they cannot overflow."""
    outer_G2: Tensor
    """Sums of g times the position in the first and the last interval, in float64."""

    def by_table(self) -> tuple[Tensor, Tensor]:
        """Return both sums for every interval of every model, G x K in float64."""
        by_start_GK, by_rise_GK = (self.inner_GK2.double() * UNIT).unbind(2)
        by_rise_GK[:, 0] += self.outer_G2[:, 0]
        by_rise_GK[:, -1] += self.outer_G2[:, 1]
        return by_start_GK, by_rise_GK


class Inputs(NamedTuple):
    """Inputs of a cross-entropy, or gradients with respect to them.

    With several models, G is the first axis.

    Shapes: hidden N x K x D, log_prior N x K, weight V x D, bias V. `hidden` has the dtype of the
    matrix products.
    """

    hidden: Tensor
    log_prior: Tensor
    weight: Tensor
    bias: Tensor


def is_fused(targets: Tensor, functions: Sequence[Pointwise], weight: Tensor) -> bool:
    """Return True if the kernels support these inputs."""
    kinds = Identity, SmoothBend, Softcap, PiecewiseLinear
    is_supported = targets.dim() == 2 and all(type(function) in kinds for function in functions)
    return is_supported and weight.dtype == torch.float32 and runs_triton(weight.device)


def fused_cross_entropy(
    inputs: Inputs,
    rows: tuple[Tensor, Tensor],
    functions: Sequence[Pointwise],
    parameters: Sequence[Tensor],
    gradients: Inputs | None,
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Return every model's weighted sum of -log P(target), and gradients for `parameters`.

    The sums have shape G, in float64. `rows` has targets and weights, both G x N; a model's weights
    sum to at most 1. `parameters` have a leading axis G. In `gradients`, adds to `weight` and
    `bias`, and overwrites `hidden` and `log_prior`.
    """
    from trainables.output_layers import kernels  # Triton: only on a GPU

    targets_GN, weights_GN = rows
    count, total, experts, width = inputs.hidden.shape
    bend = _bend_of(functions, parameters, inputs.bias)
    first, sums = functions[0], None
    if (
        gradients is not None
        and isinstance(first, PiecewiseLinear)
        and first.weight_K.requires_grad
    ):
        inner_GK2 = torch.zeros_like(bend.table, dtype=torch.int64)
        sums = IntervalSums(inner_GK2, inner_GK2.new_zeros(count, 2, dtype=torch.float64))
    dtype = inputs.hidden.dtype
    factor_GVD = aligned(inputs.weight, dtype)
    vocabulary = factor_GVD.shape[1]
    zeros = -vocabulary % ALIGNMENT
    stride = vocabulary + zeros
    logits = count * experts * stride
    contexts = min(total, max(1, CHUNK_BYTES // (logits * factor_GVD.element_size())))
    buffer = factor_GVD.new_empty(contexts * logits)
    bias_GS = pad(inputs.bias.detach(), (0, zeros)).contiguous()
    losses_G = torch.zeros(count, dtype=torch.float64, device=factor_GVD.device)
    for start in range(0, total, contexts):
        chunk = slice(start, min(start + contexts, total))
        hidden = aligned(inputs.hidden[:, chunk].reshape(count, -1, width), dtype)
        rows_GmS = buffer[: hidden[..., 0].numel() * stride].view(count, -1, stride)
        product = torch.bmm(hidden, factor_GVD.mT, out=rows_GmS[..., :vocabulary])
        targets_Gm = targets_GN[:, chunk].repeat_interleave(experts, 1)
        log_p_Gm, greatest_Gm, normaliser_Gm = kernels.forward(product, bias_GS, targets_Gm, bend)
        losses_Gn, share_GnK = _mix(log_p_Gm, inputs.log_prior[:, chunk], weights_GN[:, chunk])
        losses_G += losses_Gn.sum(1)
        if gradients is not None:
            gradients.log_prior[:, chunk] = -share_GnK
            row_values = (share_GnK.reshape(count, -1), greatest_Gm, normaliser_Gm)
            gradients.bias.add_(
                kernels.backward_(product, bias_GS, targets_Gm, bend, row_values, sums)
            )
            torch.bmm(product, factor_GVD, out=gradients.hidden[:, chunk].view(count, -1, width))
            add_batched_product_(gradients.weight, product.mT, hidden)
    if gradients is None:
        return losses_G, ()
    if sums is not None and isinstance(first, PiecewiseLinear):
        return losses_G, (first.gradient_of(parameters[0].detach(), *sums.by_table()),)
    return losses_G, tuple(map(torch.zeros_like, parameters))


def _mix(log_p_Gm: Tensor, log_prior_GnK: Tensor, weights_Gn: Tensor) -> tuple[Tensor, Tensor]:
    joint_GnK = log_prior_GnK.float() + log_p_Gm.view(log_prior_GnK.shape)
    log_p_Gn1 = joint_GnK.logsumexp(2, keepdim=True)
    share_GnK = (joint_GnK - log_p_Gn1).exp_().mul_(weights_Gn.unsqueeze(2))
    return -log_p_Gn1.squeeze(2).double() * weights_Gn, share_GnK


def _bend_of(functions: Sequence[Pointwise], parameters: Sequence[Tensor], like: Tensor) -> Bend:
    first = functions[0]
    if isinstance(first, PiecewiseLinear):
        table_GK2 = torch.stack(first.tables(parameters[0].detach(), torch.float32), 2)
        return Bend("piecewise", table_GK2, first.width)
    if all(isinstance(function, Identity) for function in functions):
        return Bend("identity", like.unsqueeze(2))
    if isinstance(first, Softcap):
        caps = tuple(
            (f.height, f.shift, 1 / f.width, 0.0) for f in functions if isinstance(f, Softcap)
        )
        return Bend("softcap", _constants(caps, like.device))
    bends = tuple((f.c, f.k) if isinstance(f, SmoothBend) else (0.0, 1.0) for f in functions)
    return Bend("smooth", _constants(bends, like.device))


# Cached, because a copy would delay every step and captured graphs read this tensor.
@functools.cache
def _constants(bends: tuple[tuple[float, ...], ...], device: torch.device) -> Tensor:
    return torch.tensor(bends, dtype=torch.float32, device=device).unflatten(1, (-1, 2))
