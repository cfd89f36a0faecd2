"""Generalized SigSoftmax, and SigSoftmax as one of its members."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from trainables.output_layers.pointwise import ChunkPass, Pointwise


class SmoothBend(Pointwise):
    """f(x) = k(x - c) + c - (k - 1) softplus(x - c) (AAAI 2021, eq. 3): a smooth bend at c from slope k to slope 1.

    Under a softmax, k = 1 is softmax and c = 0, k = 2 is SigSoftmax.
    """

    def __init__(self, *, c: float, k: float) -> None:
        super().__init__()
        self.c = c
        self.k = k

    def forward(self, logits: Tensor) -> Tensor:
        shifted = logits - self.c
        # The framework's softplus turns linear at a threshold of 20, 2e-9 too early for float64.
        return self.k * shifted + self.c - (self.k - 1) * softplus(shifted, threshold=40.0)

    def chunk_pass(self, like_nV: Tensor) -> ChunkPass:
        return _BendPass(self, like_nV)


class _BendPass(ChunkPass):
    def __init__(self, function: SmoothBend, like_nV: Tensor) -> None:
        self._c, self._k = function.c, function.k
        self._buffer_nV = torch.empty_like(like_nV)

    def apply_(self, logits_nV: Tensor) -> None:
        shifted_nV = logits_nV.sub_(self._c)
        self._softplus_nV = self._buffer_nV[: len(logits_nV)]
        torch.logaddexp(shifted_nV, shifted_nV.new_zeros(()), out=self._softplus_nV)
        shifted_nV.mul_(self._k).sub_(self._softplus_nV, alpha=self._k - 1)

    def pull_back_(self, gradient_nV: Tensor) -> None:
        # f' = k - (k - 1) sigmoid, and 1 - sigmoid(t) = exp(-softplus(t)): one exponential, no second buffer.
        slope_nV = self._softplus_nV.neg_().exp_().mul_(self._k - 1).add_(1.0)
        gradient_nV.mul_(slope_nV)
