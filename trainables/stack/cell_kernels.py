# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
"""Two Triton kernels: a time step of stacked LSTM layers, forward and backward, without products.

H is the layers' width. Kernels compute in float32; bias and c are float32. The gates'
pre-activations, their gradients and h have the dtype of the matrix products. The backward kernel
recomputes the gates, bit for bit.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

MAX_COLUMNS = 256
STRIDES = ["sums_stride", "state_stride", "h_stride", "output_stride"]
"""Strides that vary with the window: if Triton specialised on them, it would compile many
kernels."""


def cell_(sums: Tensor, bias: Tensor, c_before: Tensor, c: Tensor, h: Tensor) -> None:
    """Write the LSTM state after the step to `c` and `h`, both G x B x H.

    `sums` are the gates' pre-activations without the bias, G x B x 4 H; `bias` is G x 4 H. Rows of
    h may have gaps.
    """
    models, batch, width = c.shape
    assert c.dtype == c_before.dtype == bias.dtype == torch.float32
    assert _model_stride(c_before) == _model_stride(c) and bias.is_contiguous()
    block = _block(width)
    _forward[triton.cdiv(width, block), batch, models](
        sums,
        bias,
        c_before,
        c,
        h,
        width,
        h.stride(1),
        _model_stride(sums),
        _model_stride(c),
        h.stride(0),
        BLOCK=block,
    )


def cell_back(
    sums: Tensor,
    bias: Tensor,
    c_pair: Tensor,
    by_states: tuple[Tensor, Tensor, Tensor],
    *,
    out: Tensor,
) -> Tensor:
    """Write the pre-activations' gradient to `out`; return the gradient of c before the step.

    `c_pair` is c before and after the step, G x 2 x B x H. `by_states` has the gradients of the
    output, of h (from the next step) and of c. The result overwrites the gradient of c. Rows of h's
    gradient may have gaps.
    """
    by_output, by_h, by_c = by_states
    models, batch, width = by_c.shape
    c_before = c_pair[:, 0]
    assert c_before.dtype == by_c.dtype == bias.dtype == torch.float32
    assert (
        by_c.is_contiguous() and bias.is_contiguous() and _model_stride(out) == _model_stride(sums)
    )
    block = _block(width)
    _backward[triton.cdiv(width, block), batch, models](
        sums, bias, c_before, by_output, by_h, by_c, out, width, by_h.stride(1),
        _model_stride(sums), _model_stride(c_before), by_h.stride(0), _model_stride(by_output),
        BLOCK=block,
    )  # fmt: skip
    return by_c


def _block(width: int) -> int:
    return min(MAX_COLUMNS, triton.next_power_of_2(width))


def _model_stride(tensor: Tensor) -> int:
    assert tensor[0].is_contiguous()
    return tensor.stride(0)


@triton.jit
def _tanh(x):
    magnitude = tl.abs(x)
    tail = tl.exp(-2.0 * magnitude)
    square = magnitude * magnitude
    # Near 0, 1 - exp(-2 x) has lost its last digits.
    series = magnitude * (
        1.0 - square * (1.0 / 3.0 - square * (2.0 / 15.0 - square * (17.0 / 315.0)))
    )
    tanh = tl.where(magnitude < 0.2, series, (1.0 - tail) / (1.0 + tail))
    return tl.where(x < 0.0, -tanh, tanh)


@triton.jit
def _sum(sums, bias, mask):
    return tl.load(sums, mask=mask, other=0.0).to(tl.float32) + tl.load(bias, mask=mask, other=0.0)


@triton.jit
def _gates(sums, bias, width, mask):
    i = tl.sigmoid(_sum(sums, bias, mask))
    f = tl.sigmoid(_sum(sums + width, bias + width, mask))
    g = _tanh(_sum(sums + 2 * width, bias + 2 * width, mask))
    o = tl.sigmoid(_sum(sums + 3 * width, bias + 3 * width, mask))
    return i, f, g, o


@triton.jit(do_not_specialize=STRIDES)
def _forward(
    sums, bias, c_before, c, h, width, h_row, sums_stride, state_stride, h_stride,
    BLOCK: tl.constexpr,
):  # fmt: skip
    row, model = tl.program_id(1), tl.program_id(2).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = column < width
    bias += 4 * model * width + column
    i, f, g, o = _gates(sums + model * sums_stride + 4 * row * width + column, bias, width, mask)
    offset = model * state_stride + row * width + column
    new_c = f * tl.load(c_before + offset, mask=mask, other=0.0) + i * g
    tl.store(c + offset, new_c, mask=mask)
    tl.store(h + model * h_stride + row * h_row + column, o * _tanh(new_c), mask=mask)


@triton.jit(do_not_specialize=STRIDES)
def _backward(
    sums, bias, c_before, by_output, by_h, by_c, by_sums, width, h_row,
    sums_stride, state_stride, h_stride, output_stride, BLOCK: tl.constexpr,
):  # fmt: skip
    row, model = tl.program_id(1), tl.program_id(2).to(tl.int64)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = column < width
    gates = model * sums_stride + 4 * row * width + column
    offset = row * width + column
    c_offset = model * tl.num_programs(1) * width + offset
    i, f, g, o = _gates(sums + gates, bias + 4 * model * width + column, width, mask)
    old_c = tl.load(c_before + model * state_stride + offset, mask=mask, other=0.0)
    tanh_c = _tanh(f * old_c + i * g)
    grad_h = tl.load(by_output + model * output_stride + offset, mask=mask, other=0.0)
    grad_h += tl.load(by_h + model * h_stride + row * h_row + column, mask=mask, other=0.0).to(
        tl.float32
    )
    grad_c = tl.load(by_c + c_offset, mask=mask, other=0.0) + grad_h * o * (1.0 - tanh_c * tanh_c)
    by_sums += gates
    tl.store(by_sums, grad_c * g * i * (1.0 - i), mask=mask)
    tl.store(by_sums + width, grad_c * old_c * f * (1.0 - f), mask=mask)
    tl.store(by_sums + 2 * width, grad_c * i * (1.0 - g * g), mask=mask)
    tl.store(by_sums + 3 * width, grad_h * tanh_c * o * (1.0 - o), mask=mask)
    tl.store(by_c + c_offset, grad_c * f, mask=mask)
