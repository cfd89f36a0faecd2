"""Piecewise linear increasing functions with K intervals (Ganea et al. 2019)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from trainables.device import running_sum
from trainables.output_layers.pointwise import ChunkPass, Pointwise

START = math.log(math.e - 1)


class _LookUpPass(ChunkPass):
    def __init__(self, function: PiecewiseLinear, like_nV: Tensor) -> None:
        self._function, self._weight_K = function, function.weight_K.detach()
        self._start_K, self._rise_K = function.tables(self._weight_K, like_nV.dtype)
        self._sum_start_K = torch.zeros_like(self._start_K)
        self._sum_rise_K = torch.zeros_like(self._rise_K)
        self._indices = torch.empty(like_nV.shape, dtype=torch.int64, device=like_nV.device)
        self._positions, self._rises = torch.empty_like(like_nV), torch.empty_like(like_nV)

    def apply_(self, logits_nV: Tensor) -> None:
        rows = len(logits_nV)
        indices, positions, rises = self._indices[:rows], self._positions[:rows], self._rises[:rows]
        positions.copy_(logits_nV)
        self._function.locate_(positions, indices, rises)
        torch.index_select(self._start_K, 0, indices.view(-1), out=logits_nV.view(-1))
        torch.index_select(self._rise_K, 0, indices.view(-1), out=rises.view(-1))
        logits_nV.addcmul_(rises, positions)

    def pull_back_(self, gradient_nV: Tensor) -> None:
        rows = len(gradient_nV)
        if self._function.weight_K.requires_grad:
            flat = self._indices[:rows].view(-1)
            self._sum_start_K.scatter_add_(0, flat, gradient_nV.view(-1))
            self._sum_rise_K.scatter_add_(
                0, flat, self._positions[:rows].mul_(gradient_nV).view(-1)
            )
        gradient_nV.mul_(self._rises[:rows]).mul_(1 / self._function.width)

    def gradients(self) -> tuple[Tensor, ...]:
        sums = self._sum_start_K.double(), self._sum_rise_K.double()
        return (self._function.gradient_of(self._weight_K, *sums),)


class PiecewiseLinear(Pointwise):
    """Linear on each of K equal intervals of [-limit, limit], with slope softplus(w_i) > 0.

    The outer pieces continue beyond the limits. f is 0 in the middle, because float32 is most
    precise near 0.
    """

    chunk_pass = _LookUpPass

    def __init__(self, knots: int, *, limit: float, learning_rate: float | None) -> None:
        """Without a learning rate, slopes stay random (LMS-PLIF dagger in AAAI 2021, Table 3)."""
        super().__init__()
        self.limit = limit
        self.learning_rate = learning_rate
        self.width = 2 * limit / knots
        self.weight_K = nn.Parameter(
            torch.full((knots,), START), requires_grad=learning_rate is not None
        )

    def initialise(self, generator: torch.Generator) -> None:
        """Draw w ~ Normal(0, 1) + ln(e - 1)."""
        nn.init.normal_(self.weight_K, START, 1.0, generator=generator)

    def tables(self, weight_K: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return f at the left end of each interval, and the rise of f over the interval.

        Sums are in float64. Intervals are the last axis of `weight_K`; other axes may hold several
        functions.
        """
        rise_K = softplus(weight_K, threshold=40.0).double() * self.width
        start_K = running_sum(rise_K) - rise_K
        middle = start_K.shape[-1] // 2
        return (start_K - start_K[..., middle : middle + 1]).to(dtype), rise_K.to(dtype)

    def gradient_of(self, weight_K: Tensor, sum_start_K: Tensor, sum_rise_K: Tensor) -> Tensor:
        """Return the loss's gradient with respect to `weight_K`.

        The arguments are float64 gradients with respect to the two results of `tables`.
        """
        # Rise j also lifts the start of every interval to its right, and lowers the middle value
        # that is subtracted from all.
        rise_K = sum_rise_K + running_sum(sum_start_K.flip(-1)).flip(-1) - sum_start_K
        rise_K[..., : rise_K.shape[-1] // 2] -= sum_start_K.sum(-1, keepdim=True)
        return (rise_K * self.width * weight_K.sigmoid()).to(weight_K.dtype)

    def locate_(self, logits: Tensor, indices: Tensor, scratch: Tensor) -> None:
        """Write each logit's interval to `indices`, and overwrite the logit with its position.

        The position is 0 at the interval's left end and 1 at the right.
        """
        middle, last = len(self.weight_K) // 2, len(self.weight_K) - 1
        # From the middle: adding the limit first would cost a logit near 0 its last digits.
        positions = self._from_middle_(logits)
        torch.clamp(positions, -middle - 1, last, out=scratch)
        # Clamped again as integers, so that a NaN also has an interval and stays NaN instead of an
        # index out of range.
        indices.copy_(scratch.floor_()).add_(middle).clamp_(0, last)
        positions.sub_(scratch.copy_(indices).sub_(middle))

    def _from_middle_(self, logits: Tensor) -> Tensor:
        logits.mul_(1 / self.width)
        return logits.add_(0.5) if len(self.weight_K) % 2 else logits

    def forward(self, logits: Tensor) -> Tensor:
        """Return f(logits)."""
        indices = torch.empty(logits.shape, dtype=torch.int64, device=logits.device)
        self.locate_(logits.detach().clone(), indices, torch.empty_like(logits))
        start_K, rise_K = self.tables(self.weight_K, logits.dtype)
        positions = self._from_middle_(logits.clone()) - (indices - len(self.weight_K) // 2)
        return start_K[indices] + rise_K[indices] * positions
