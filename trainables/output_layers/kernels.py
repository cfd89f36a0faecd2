# mypy: disable-error-code="no-untyped-def, no-untyped-call, untyped-decorator, misc"
"""Two Triton kernels for a chunk of the cross-entropy on a GPU.

Both read the matrix product of G models, G x m x V, and bias rows, G x `stride`. Rows of either
begin `stride` numbers apart, so that a thread can read 16 bytes at once. In the product, numbers
between rows are scratch. f is computed in float32 from the model's row of `Bend.table`: c and k of
a smooth bend; height, shift and inverse width of a softcap; each interval's left value and rise for
a piecewise linear function.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from trainables.output_layers.fused import UNIT, Bend, IntervalSums

UNITS = tl.constexpr(1 / UNIT)
MAX_COLUMNS, MAX_BYTES = 2048, 2048
"""Maximum block size: columns in the first kernel, bytes in the second."""
WARPS, REGISTERS, REGISTERS_WITH_SUMS = 4, 64, 80
"""Warps and registers per thread of the second kernel. A multiprocessor then holds 32 warps, or 24
with sums. By default, the compiler takes twice the registers."""
ROWS = 16  # per program of the second kernel, which sums the bias gradient over them
# Kernels specialised on divisors of these arguments would not be faster.
NOT_SPECIALISED = ["rows", "knots"]


def forward(
    product_GmV: Tensor, bias_GS: Tensor, targets_Gm: Tensor, bend: Bend
) -> tuple[Tensor, Tensor, Tensor]:
    """Return log softmax(f(logits)) at the targets, and two row values for `backward_`.

    These are the row's greatest f and the sum of exp(f - greatest f). All results are G x m in
    float32, bitwise reproducible.
    """
    models, rows, columns = product_GmV.shape
    assert product_GmV.stride() == (rows * product_GmV.stride(1), product_GmV.stride(1), 1)
    assert (
        bias_GS.shape == (models, product_GmV.stride(1))
        and bias_GS.is_contiguous()
        and targets_Gm.is_contiguous()
    )
    # Three tensors, because parts of one would not all begin at a multiple of 16 bytes.
    log_p, greatest, normaliser = (
        torch.empty_like(targets_Gm, dtype=torch.float32) for _ in range(3)
    )
    block = min(MAX_COLUMNS, triton.next_power_of_2(columns))
    _forward[rows, models](
        product_GmV, bias_GS, targets_Gm, log_p, greatest, normaliser,
        rows, columns, product_GmV.stride(1), *bend.arguments(),
        BLOCK=block, num_warps=max(1, block // 256),
    )  # fmt: skip
    return log_p, greatest, normaliser


def backward_(
    product_GmV: Tensor,
    bias_GS: Tensor,
    targets_Gm: Tensor,
    bend: Bend,
    row_values: tuple[Tensor, Tensor, Tensor],
    sums: IntervalSums | None,
) -> Tensor:
    """Overwrite the matrix product with the loss's gradient with respect to it.

    The gradient is `weight` (softmax - onehot(target)) f'. Returns the gradient with respect to the
    bias, G x V in float32, and adds to `sums` if given. `row_values`, each G x m, are the weights
    and the row values of `forward`. Each model's weights sum to at most 1. Bitwise reproducible.
    """
    models, rows, columns = product_GmV.shape
    assert all(values.is_contiguous() for values in row_values)
    block = min(MAX_BYTES // product_GmV.element_size(), triton.next_power_of_2(columns))
    programs = triton.cdiv(columns, block), triton.cdiv(rows, ROWS)
    by_bias = product_GmV.new_empty(models, programs[1], product_GmV.stride(1), dtype=torch.float32)
    outer = product_GmV.new_empty(models, *programs, 2, dtype=torch.float32)
    _backward[(*programs, models)](
        product_GmV, bias_GS, targets_Gm, *row_values,
        by_bias, by_bias if sums is None else sums.inner_GK2, outer,
        rows, columns, product_GmV.stride(1), *bend.arguments(),
        SUMS=sums is not None, BLOCK=block, ROWS=ROWS,
        PER_THREAD=max(1, block // (32 * WARPS)), num_warps=WARPS,
        maxnreg=REGISTERS if sums is None else REGISTERS_WITH_SUMS,
    )  # fmt: skip
    if sums is not None:
        sums.outer_G2.add_(outer.sum((1, 2), dtype=torch.float64))
    return by_bias.sum(1)[:, :columns]


@triton.jit
def _bend(x, table, knots, inverse_width, KIND: tl.constexpr):
    f, position = x, x
    slope = tl.full(x.shape, 1.0, tl.float32)
    index = tl.full(x.shape, 0, tl.int32)
    if KIND == "smooth":
        c, k = tl.load(table), tl.load(table + 1)
        t = x - c
        tail = tl.exp(-tl.abs(t))
        f = k * t - (k - 1.0) * (tl.maximum(t, 0.0) + tl.log(1.0 + tail))
        slope = 1.0 + (k - 1.0) * tl.where(t > 0.0, tail, 1.0) / (1.0 + tail)
    if KIND == "softcap":
        height, inverse = tl.load(table), tl.load(table + 2)
        t = (x + tl.load(table + 1)) * inverse
        size = tl.abs(t)
        tail = tl.exp(-2.0 * size)
        # Near 0 the quotient has lost digits; the first terms of the series have all.
        series = size * (1.0 + t * t * (-1.0 / 3.0 + t * t * (2.0 / 15.0 - t * t * (17.0 / 315.0))))
        tanh = tl.where(size < 0.1, series, (1.0 - tail) / (1.0 + tail))
        f = height * tl.where(t < 0.0, -tanh, tanh)
        slope = 4.0 * height * inverse * tail / ((1.0 + tail) * (1.0 + tail))
    if KIND == "piecewise":
        # Relative to the middle: adding the limit first would cost a logit near 0 its last digits.
        middle = knots // 2
        position = x * inverse_width + 0.5 * (knots % 2)
        clamped = tl.minimum(tl.maximum(position, -middle - 1.0), knots + 0.0)
        # Clamped again as integers: a NaN has no interval. Its position, and so its f, is still
        # NaN.
        index = tl.minimum(tl.maximum(tl.floor(clamped).to(tl.int32) + middle, 0), knots - 1)
        position -= (index - middle).to(tl.float32)
        # Value and rise in one read of 8 bytes.
        pair = tl.load(table.to(tl.pointer_type(tl.int64), bitcast=True) + index)
        rise = (pair >> 32).to(tl.int32).to(tl.float32, bitcast=True)
        f = pair.to(tl.int32).to(tl.float32, bitcast=True) + rise * position
        slope = rise * inverse_width
    return f, slope, index, position


@triton.jit(do_not_specialize=NOT_SPECIALISED)
def _forward(
    product, bias, targets, log_p, greatest, normaliser, rows, columns, stride,
    table, knots, inverse_width, KIND: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    model = tl.program_id(1)
    row = model * rows + tl.program_id(0)
    product += row.to(tl.int64) * stride
    bias += model * stride
    table += 2 * knots * model
    target = tl.load(targets + row).to(tl.int32)
    max_f = -float("inf")
    total = 0.0
    target_f = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        column = start + tl.arange(0, BLOCK)
        # Also reads the row's scratch: unlike V, `stride` is a multiple of what a thread reads at
        # once.
        x = tl.load(product + column, mask=column < stride, other=0.0).to(tl.float32)
        x += tl.load(bias + column, mask=column < stride, other=0.0)
        x = tl.where(column < columns, x, 0.0)
        f, _, _, _ = _bend(x, table, knots, inverse_width, KIND)
        f = tl.where(column < columns, f, -float("inf"))
        new_max_f = tl.maximum(max_f, tl.max(f, 0))
        total = total * tl.exp(max_f - new_max_f) + tl.sum(tl.exp(f - new_max_f), 0)
        max_f = new_max_f
        target_f += tl.where(column == target, f, 0.0)
    tl.store(log_p + row, tl.sum(target_f, 0) - max_f - tl.log(total))
    tl.store(greatest + row, max_f)
    tl.store(normaliser + row, total)


@triton.jit(do_not_specialize=NOT_SPECIALISED)
def _backward(
    product, bias, targets, weights, greatest, normaliser, by_bias, sums, outer,
    rows, columns, stride, table, knots, inverse_width,
    KIND: tl.constexpr, SUMS: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr,
    PER_THREAD: tl.constexpr,
):  # fmt: skip
    model, band = tl.program_id(2), tl.program_id(1)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = column < columns
    table += 2 * knots * model
    sums += 2 * knots * model
    by_column = tl.zeros((BLOCK,), tl.float32)
    left, right = (
        tl.zeros((BLOCK // PER_THREAD,), tl.float32),
        tl.zeros((BLOCK // PER_THREAD,), tl.float32),
    )
    for row_in_model in range(band * ROWS, tl.minimum(band * ROWS + ROWS, rows)):
        row = model * rows + row_in_model
        product_row = product + row.to(tl.int64) * stride + column
        weight, max_f, total = (
            tl.load(weights + row),
            tl.load(greatest + row),
            tl.load(normaliser + row),
        )
        target = tl.load(targets + row).to(tl.int32)
        x = tl.load(product_row, mask=column < stride, other=0.0).to(tl.float32)
        x += tl.load(bias + model * stride + column, mask=column < stride, other=0.0)
        f, slope, index, position = _bend(tl.where(mask, x, 0.0), table, knots, inverse_width, KIND)
        by_f = weight / total * tl.exp(f - max_f) - tl.where(column == target, weight, 0.0)
        by_f = tl.where(mask, by_f, 0.0)
        gradient = by_f * slope
        by_column += gradient
        tl.store(product_row, gradient, mask=column < stride)
        if SUMS:
            by_f_position = by_f * position
            for number in tl.static_range(PER_THREAD):
                interval = _thread_values(index, number, PER_THREAD)
                by_start, by_rise = (
                    _thread_values(by_f, number, PER_THREAD),
                    _thread_values(by_f_position, number, PER_THREAD),
                )
                first, last = interval == 0, interval == knots - 1
                inner = tl.where(first | last, 0.0, by_rise)
                tl.atomic_add(
                    sums + 2 * interval, _to_units(by_start), mask=by_start != 0.0, sem="relaxed"
                )
                tl.atomic_add(
                    sums + 2 * interval + 1, _to_units(inner), mask=inner != 0.0, sem="relaxed"
                )
                left += tl.where(first, by_rise, 0.0)
                right += tl.where(last, by_rise, 0.0)
    tl.store(
        by_bias + (model * tl.num_programs(1) + band) * stride + column,
        by_column,
        mask=column < stride,
    )
    if SUMS:
        outer += 2 * ((model * tl.num_programs(0) + tl.program_id(0)) * tl.num_programs(1) + band)
        tl.store(outer, tl.sum(left, 0))
        tl.store(outer + 1, tl.sum(right, 0))


@triton.jit
def _thread_values(x, number, PER_THREAD: tl.constexpr):
    # An atomic on a whole block would exchange numbers between threads.
    by_thread = tl.reshape(x.to(tl.int32, bitcast=True), (x.shape[0] // PER_THREAD, PER_THREAD))
    selector = tl.arange(0, PER_THREAD)[None, :] == number
    return tl.sum(tl.where(selector, by_thread, 0), 1).to(x.dtype, bitcast=True)


@triton.jit
def _to_units(x):
    return tl.floor(x * UNITS + 0.5).to(tl.int64)
