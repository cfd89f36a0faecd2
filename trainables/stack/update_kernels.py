# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
"""Triton kernel that updates one parameter of all models, reading and writing each number once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl
from torch import Tensor

from trainables.stack.update import EPSILON

if TYPE_CHECKING:
    from trainables.stack.update import Adam, ModelNumbers

BLOCK, WARPS = 2048, 8


def update_(
    weight: Tensor,
    gradient: Tensor,
    numbers: ModelNumbers,
    adam: Adam | None,
    *,
    decoupled_decay: bool,
) -> None:
    """Update `weight` (G x ...) and Adam's moments in place.

    Decay shrinks the weight if `decoupled_decay`; otherwise it is added to the gradient.
    """
    # Unused arguments get any valid pointer.
    mean, square, *divisors, betas = (
        (weight, weight, *numbers[:2], (0.0, 0.0)) if adam is None else adam
    )
    tensors = weight, gradient, mean, square
    assert all(tensor.dtype == torch.float32 and tensor.is_contiguous() for tensor in tensors)
    models, size = len(weight), weight[0].numel()
    _update[triton.cdiv(size, BLOCK), models](
        *tensors, *numbers, *divisors, size, 1 - betas[0], 1 - betas[1], EPSILON,
        ADAM=adam is not None, DECOUPLED_DECAY=decoupled_decay, BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip


@triton.jit
def _number(values):
    return tl.load(values + tl.program_id(1)).to(tl.float32)


@triton.jit
def _update(
    weight, gradient, mean, square, shrink, rate, decay, mean_divisor, square_divisor,
    size, lerp1, lerp2, epsilon, ADAM: tl.constexpr, DECOUPLED_DECAY: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    offset = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offset < size
    index = tl.program_id(1).to(tl.int64) * size + offset
    w = tl.load(weight + index, mask=mask)
    change = tl.load(gradient + index, mask=mask) * _number(shrink)
    step = _number(rate)
    if DECOUPLED_DECAY:
        w *= 1.0 - step * _number(decay)
    else:
        change += _number(decay) * w
    if ADAM:
        m, s = tl.load(mean + index, mask=mask), tl.load(square + index, mask=mask)
        m += lerp1 * (change - m)
        s += lerp2 * (change * change - s)
        tl.store(mean + index, m, mask=mask)
        tl.store(square + index, s, mask=mask)
        change = m / _number(mean_divisor) / (tl.sqrt(s / _number(square_divisor)) + epsilon)
    w -= step * change
    tl.store(weight + index, w, mask=mask)
