# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
"""Triton kernel that updates one parameter of all models, reading and writing each number once.

Only `update` imports this, and only if Triton is available."""

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
    decays_apart: bool,
) -> None:
    """Overwrite weight (G x ...) and moments.

    Decay shrinks the weight itself if `decays_apart`; otherwise it is added to the gradient."""
    # Unused arguments get any valid pointer.
    mean, square, *by_moments, betas = (
        (weight, weight, *numbers[:2], (0.0, 0.0)) if adam is None else adam
    )
    tensors = weight, gradient, mean, square
    assert all(tensor.dtype == torch.float32 and tensor.is_contiguous() for tensor in tensors)
    models, size = len(weight), weight[0].numel()
    _update[triton.cdiv(size, BLOCK), models](
        *tensors, *numbers, *by_moments, size, 1 - betas[0], 1 - betas[1], EPSILON,
        ADAM=adam is not None, DECAYS_APART=decays_apart, BLOCK=BLOCK, num_warps=WARPS,
    )  # fmt: skip


@triton.jit
def _of_model(values):
    return tl.load(values + tl.program_id(1)).to(tl.float32)


@triton.jit
def _update(
    weight, gradient, mean, square, shrink, rate, decay, by_mean, by_square,
    size, rest1, rest2, epsilon, ADAM: tl.constexpr, DECAYS_APART: tl.constexpr,
    BLOCK: tl.constexpr,
):  # fmt: skip
    place = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    real = place < size
    at = tl.program_id(1).to(tl.int64) * size + place
    w = tl.load(weight + at, mask=real)
    change = tl.load(gradient + at, mask=real) * _of_model(shrink)
    step = _of_model(rate)
    if DECAYS_APART:
        w *= 1.0 - step * _of_model(decay)
    else:
        change += _of_model(decay) * w
    if ADAM:
        m, s = tl.load(mean + at, mask=real), tl.load(square + at, mask=real)
        m += rest1 * (change - m)
        s += rest2 * (change * change - s)
        tl.store(mean + at, m, mask=real)
        tl.store(square + at, s, mask=real)
        change = m / _of_model(by_mean) / (tl.sqrt(s / _of_model(by_square)) + epsilon)
    w -= step * change
    tl.store(weight + at, w, mask=real)
