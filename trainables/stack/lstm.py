"""One LSTM layer of all models of a stack, with an explicit backward pass through time.

The backward pass goes step by step only for the product with the hidden-to-hidden weights. Each
weight's gradient is one product over all steps. Steps beyond a model's window have no gradient.

Further shapes: I inputs, H outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from trainables.device import aligned, aligned_empty, batched_product, runs_triton


class StackedState(NamedTuple):
    """State of a layer before its next window, G x B x H."""

    h: Tensor
    c: Tensor


class LstmWeights(NamedTuple):
    """Weights of one layer for all models; axis 0 is the model.

    Gate order: input, forget, cell, output. `mask_hh` and `mask_inputs` (G x B x I) are dropout
    masks.
    """

    ih: Tensor
    hh: Tensor
    bias_ih: Tensor
    bias_hh: Tensor
    mask_hh: Tensor | None = None
    mask_inputs: Tensor | None = None


def stacked_lstm(
    inputs_GTBI: Tensor,
    state: StackedState,
    weights: LstmWeights,
    lengths_G: Tensor,
    dtype: torch.dtype,
) -> tuple[Tensor, StackedState]:
    """Return outputs, G x T x B x H, and every model's detached state at the end of its own window.

    Matrix products use `dtype` for factors and results. All else uses the weights' dtype.
    """
    apply: Callable[..., tuple[Tensor, Tensor, Tensor]] = _StackedLstm.apply
    outputs_GTBH, h, c = apply(inputs_GTBI, *state, *weights, lengths_G, dtype)
    return outputs_GTBH, StackedState(h, c)


class _StackedLstm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        inputs_GTBI: Tensor,
        h_GBH: Tensor,
        c_GBH: Tensor,
        weight_ih: Tensor,
        weight_hh: Tensor,
        bias_ih: Tensor,
        bias_hh: Tensor,
        mask_hh: Tensor | None,
        mask_inputs: Tensor | None,
        lengths_G: Tensor,
        dtype: torch.dtype,
    ) -> tuple[Tensor, Tensor, Tensor]:
        models, steps, batch, _ = inputs_GTBI.shape
        width = weight_hh.shape[2]
        mask_GTBI = None if mask_inputs is None else mask_inputs.unsqueeze(1)
        flat_inputs = aligned(inputs_GTBI, dtype, mask_GTBI).flatten(1, 2)
        ih, hh = aligned(weight_ih, dtype), aligned(weight_hh, dtype, mask_hh)
        bias = bias_ih + bias_hh
        gates = torch.bmm(flat_inputs, ih.mT).view(models, steps, batch, 4 * width)
        # One step longer than the window: index 0 is the state before it.
        h_all = aligned_empty(gates, (models, steps + 1, batch, width), dtype)
        c_all = c_GBH.new_empty(h_all.shape)
        h_all[:, 0], c_all[:, 0] = h_GBH, c_GBH
        cell_, ctx.cell_back = _cell_of(gates)
        for t in range(steps):
            sums = gates[:, t].baddbmm_(h_all[:, t], hh.mT)
            cell_(sums, bias, c_all[:, t], c_all[:, t + 1], h_all[:, t + 1])
        assert gates.dtype == h_all.dtype == dtype and c_all.dtype == weight_hh.dtype
        ctx.save_for_backward(flat_inputs, h_all, c_all, gates, bias, ih, hh, mask_hh, mask_GTBI)
        ctx.set_materialize_grads(True)
        models_G = torch.arange(models, device=lengths_G.device)
        state = h_all[models_G, lengths_G].to(c_all.dtype), c_all[models_G, lengths_G]
        ctx.mark_non_differentiable(*state)
        return h_all[:, 1:].to(c_all.dtype), *state

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, by_outputs: Tensor, *_by_state: Tensor) -> tuple[Tensor | None, ...]:
        flat_inputs, h_all, c_all, gates, bias, ih, hh, mask_hh, mask_GTBI = ctx.saved_tensors
        models, steps, batch, width = by_outputs.shape
        by_outputs, by_gates = by_outputs.contiguous(), torch.empty_like(gates)
        by_h, by_c = (
            aligned_empty(gates, h_all[:, 0].shape, gates.dtype).zero_(),
            torch.zeros_like(c_all[:, 0]),
        )
        for t in reversed(range(steps)):
            by_states = by_outputs[:, t], by_h, by_c
            by_c = ctx.cell_back(
                gates[:, t], bias, c_all[:, t : t + 2], by_states, out=by_gates[:, t]
            )
            if t:
                torch.bmm(by_gates[:, t], hh, out=by_h)
        flat_gates = by_gates.view(models, steps * batch, 4 * width)
        h_before = h_all[:, :-1].flatten(1, 2)
        assert flat_gates.dtype == h_before.dtype == flat_inputs.dtype
        dtype = c_all.dtype
        by_bias = flat_gates.sum(1, dtype=dtype)
        by_inputs = None
        if ctx.needs_input_grad[0]:
            by_inputs = batched_product(flat_gates, ih, dtype).view(models, steps, batch, -1)
            if mask_GTBI is not None:
                by_inputs.mul_(mask_GTBI)
        by_ih, by_hh = (
            batched_product(flat_gates.mT, factor, dtype) for factor in (flat_inputs, h_before)
        )
        if mask_hh is not None:
            by_hh.mul_(mask_hh)
        return by_inputs, None, None, by_ih, by_hh, by_bias, by_bias, None, None, None, None


def _cell_of(gates: Tensor) -> tuple[Callable[..., None], Callable[..., Tensor]]:
    # The backward function reads what the forward function leaves in `gates`.
    if gates.dtype in (torch.float32, torch.bfloat16) and runs_triton(gates.device):
        from trainables.stack import cell_kernels  # Triton: only on a GPU

        return cell_kernels.cell_, cell_kernels.cell_back
    return _cell_, _cell_back


def _cell_(gates: Tensor, bias: Tensor, c_before: Tensor, c: Tensor, h: Tensor) -> None:
    i, f, g, o = gates.add_(bias.unsqueeze(1)).chunk(4, dim=2)
    for gate in (i, f, o):
        gate.sigmoid_()
    g.tanh_()
    torch.mul(f, c_before, out=c).addcmul_(i, g)
    torch.tanh(c, out=h).mul_(o)


def _cell_back(
    gates: Tensor,
    _bias: Tensor,
    c_pair: Tensor,
    by_states: tuple[Tensor, Tensor, Tensor],
    *,
    out: Tensor,
) -> Tensor:
    by_output, by_h, by_c = by_states
    i, f, g, o = gates.chunk(4, dim=2)
    by_h = by_output + by_h
    tanh_c = c_pair[:, 1].tanh()
    by_c = by_c + by_h * o * (1 - tanh_c * tanh_c)
    by_i, by_f, by_g, by_o = out.chunk(4, dim=2)
    by_i.copy_(by_c * g * i * (1 - i))
    by_f.copy_(by_c * c_pair[:, 0] * f * (1 - f))
    by_g.copy_(by_c * i * (1 - g * g))
    by_o.copy_(by_h * tanh_c * o * (1 - o))
    return by_c * f
