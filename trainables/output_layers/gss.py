"""Generalized SigSoftmax (gss)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from trainables.output_layers.pointwise import ChunkPass, Pointwise


class _BendPass(ChunkPass):
    def __init__(self, function: SmoothBend, like_nV: Tensor) -> None:
        self._c, self._k = function.c, function.k
        self._negated_nV, self._sigmoid_nV = torch.empty_like(like_nV), torch.empty_like(like_nV)
        self._tiny = torch.finfo(like_nV.dtype).tiny

    def apply_(self, logits_nV: Tensor) -> None:
        # With t = x - c: f(x) - c = k t - (k - 1) softplus(t), and -softplus(t) = log sigmoid(-t),
        # which f' also needs. If that sigmoid is 0 in this precision, softplus(t) is t.
        negated_nV = torch.neg(logits_nV.sub_(self._c), out=self._negated_nV[: len(logits_nV)])
        sigmoid_nV = torch.sigmoid(negated_nV, out=self._sigmoid_nV[: len(logits_nV)])
        torch.add(sigmoid_nV, self._tiny, out=logits_nV).log_()
        torch.minimum(logits_nV, negated_nV, out=logits_nV).mul_(self._k - 1).sub_(
            negated_nV, alpha=self._k
        )

    def pull_back_(self, gradient_nV: Tensor) -> None:
        slope_nV = self._sigmoid_nV[: len(gradient_nV)].mul_(self._k - 1).add_(1.0)
        gradient_nV.mul_(slope_nV)


class SmoothBend(Pointwise):
    """f(x) = k(x - c) + c - (k - 1) softplus(x - c) (AAAI 2021, eq. 3).

    The slope changes smoothly at c from k to 1. In a softmax, k = 1 is the plain softmax; c = 0, k
    = 2 is SigSoftmax.
    """

    chunk_pass = _BendPass

    def __init__(self, *, c: float, k: float) -> None:
        super().__init__()
        self.c = c
        self.k = k

    def forward(self, logits: Tensor) -> Tensor:
        """Return f(logits)."""
        shifted = logits - self.c
        # By default, torch's softplus is linear above 20: for float64, an error of 2e-9.
        return self.k * shifted + self.c - (self.k - 1) * softplus(shifted, threshold=40.0)
