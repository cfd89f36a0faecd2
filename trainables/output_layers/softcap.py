"""Softcaps: logits bent into a bounded interval."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from trainables.output_layers.pointwise import GREATEST_BIAS, ChunkPass, Pointwise

SOURCE_CAP, SOURCE_SHIFT, SOURCE_SCALE = 23.0, 5.0, 7.5


class _SoftcapPass(ChunkPass):
    def __init__(self, function: Softcap, like_nV: Tensor) -> None:
        self._height, self._shift, self._width = function.height, function.shift, function.width
        self._tail_nV = torch.empty_like(like_nV)

    def apply_(self, logits_nV: Tensor) -> None:
        # With t = (x + shift) / width, tanh'(t) = 4 q (1 - q) for q = sigmoid(-2 |t|), which unlike
        # 1 - tanh(t)^2 keeps its digits if f is flat.
        logits_nV.add_(self._shift).div_(self._width)
        torch.abs(logits_nV, out=self._tail_nV[: len(logits_nV)]).mul_(-2.0).sigmoid_()
        logits_nV.tanh_().mul_(self._height)

    def pull_back_(self, gradient_nV: Tensor) -> None:
        tail_nV = self._tail_nV[: len(gradient_nV)]
        tail_nV.addcmul_(tail_nV, tail_nV, value=-1.0)
        gradient_nV.mul_(tail_nV.mul_(4.0 * self._height / self._width))


class Softcap(Pointwise):
    """S-shaped f with values in an interval of length 2 cap (form tanh) or cap (form sigmoid).

    - tanh: f(x) = cap tanh(x / cap), slope 1 at 0. Gemma 2 has cap 30 (arXiv 2408.00118), nanochat
      15 (Karpathy 2025).
    - sigmoid: f(x) = cap sigmoid((x + shift) / scale), shift and scale proportional to the cap;
      slope 0.69 at 0 and at most 0.77. Cap 23 is 23 sigmoid((x + 5) / 7.5) of modded-nanogpt's
      train_gpt.py.

    Up to an additive constant, both are height tanh((x + shift) / width).
    """

    chunk_pass = _SoftcapPass

    def __init__(self, *, form: Literal["tanh", "sigmoid"], cap: float) -> None:
        super().__init__()
        self.form = form
        self.cap = cap
        if form == "tanh":
            self.height, self.shift, self.width = cap, 0.0, cap
        else:
            # sigmoid(2 t) = 1/2 + tanh(t) / 2.
            self.height = cap / 2
            self.shift, self.width = (
                constant * cap / SOURCE_CAP for constant in (SOURCE_SHIFT, 2 * SOURCE_SCALE)
            )
        # Beyond these, the slope is below 0.42 of the steepest, and a bias learns little.
        low, high = -self.shift - self.width, -self.shift + self.width
        self.start_range = max(-GREATEST_BIAS, low), min(GREATEST_BIAS, high)

    def forward(self, logits: Tensor) -> Tensor:
        """Return f(logits)."""
        if self.form == "tanh":
            return self.cap * torch.tanh(logits / self.cap)
        return self.cap * torch.sigmoid((logits + self.shift) / (self.width / 2))
