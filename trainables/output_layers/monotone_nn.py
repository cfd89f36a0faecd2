"""An increasing function: a network of one layer with U units (talk on Ganea et al. 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from trainables.device import add_multiple_, numbers
from trainables.output_layers.pointwise import ChunkPass, Pointwise

START_RANGE = 10.0  # the steepest points of the units are spread over [-10, 10] at first
# Steeper units would have no slope, and so no gradient, right outside this range.
STEEPEST_START = 1.6


class _NetworkPass(ChunkPass):
    # Loops over the units, so that memory does not grow with their number.

    def __init__(self, function: MonotoneNetwork, like_nV: Tensor) -> None:
        self._function = function
        self._u_U = numbers(softplus(function.steepness_U.detach()))
        self._v_U = numbers(softplus(function.height_U.detach()))
        self._b_U = numbers(function.bias_U.detach())
        self._sums_3U = torch.zeros(3, len(self._b_U), dtype=torch.float64, device=like_nV.device)
        self._input, self._scratch, self._slope = (torch.empty_like(like_nV) for _ in range(3))

    def apply_(self, logits_nV: Tensor) -> None:
        rows = len(logits_nV)
        input_nV, unit_nV = self._input[:rows], self._scratch[:rows]
        input_nV.copy_(logits_nV)
        logits_nV.zero_()
        for u, v, b in zip(self._u_U, self._v_U, self._b_U, strict=True):
            torch.mul(input_nV, u, out=unit_nV).add_(b).sigmoid_()
            add_multiple_(logits_nV, unit_nV, v)

    def pull_back_(self, gradient_nV: Tensor) -> None:
        rows = len(gradient_nV)
        input_nV, unit_nV = self._input[:rows], self._scratch[:rows]
        slope_nV = self._slope[:rows].zero_()
        for i, (u, v, b) in enumerate(zip(self._u_U, self._v_U, self._b_U, strict=True)):
            torch.mul(input_nV, u, out=unit_nV).add_(b).sigmoid_()
            self._sums_3U[0, i] += torch.dot(unit_nV.view(-1), gradient_nV.view(-1))
            unit_nV.addcmul_(unit_nV, unit_nV, value=-1.0)  # s (1 - s), the sigmoid's derivative
            add_multiple_(slope_nV, unit_nV, u * v)
            unit_nV.mul_(gradient_nV)
            self._sums_3U[1, i] += v * unit_nV.sum(dtype=torch.float64)
            self._sums_3U[2, i] += v * torch.dot(unit_nV.view(-1), input_nV.view(-1))
        gradient_nV.mul_(slope_nV)

    def gradients(self) -> tuple[Tensor, ...]:
        function, (by_v_U, by_b_U, by_u_U) = self._function, self._sums_3U
        by_steepness_U = by_u_U * function.steepness_U.double().sigmoid()
        by_height_U = by_v_U * function.height_U.double().sigmoid()
        return tuple(
            gradient.to(function.bias_U.dtype) for gradient in (by_steepness_U, by_height_U, by_b_U)
        )


class MonotoneNetwork(Pointwise):
    """f(x) = sum_i v_i sigmoid(u_i x + b_i), with u_i and v_i positive by a softplus.

    The source's additive constant is omitted: a softmax ignores it. f starts close to the identity.
    """

    chunk_pass = _NetworkPass

    def __init__(self, units: int) -> None:
        super().__init__()
        spacing = 2 * START_RANGE / units
        steepness = min(2.0 / spacing, STEEPEST_START)
        centres_U = (torch.arange(units) + 0.5) * spacing - START_RANGE
        self.steepness_U = nn.Parameter(torch.full((units,), _softplus_inverse(steepness)))
        self.height_U = nn.Parameter(torch.full((units,), _softplus_inverse(spacing)))
        self.bias_U = nn.Parameter(-steepness * centres_U)

    def forward(self, logits: Tensor) -> Tensor:
        """Return f(logits)."""
        f = torch.zeros_like(logits)
        for u, v, b in zip(
            softplus(self.steepness_U), softplus(self.height_U), self.bias_U, strict=True
        ):
            f = f + v * torch.sigmoid(u * logits + b)
        return f


def _softplus_inverse(value: float) -> float:
    return math.log(math.expm1(value))
