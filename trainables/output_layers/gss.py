"""Generalized SigSoftmax, and SigSoftmax as one of its members."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus

from trainables.output_layers.base import PointwiseSoftmax


class GeneralizedSigSoftmax(PointwiseSoftmax):
    """log_softmax(f(x)), f(x) = k(x - c) + c - (k - 1) softplus(x - c) (AAAI 2021, eqs. 3 and 5).

    f is a smooth bend at c between slope k (left) and slope 1 (right). k = 1 is softmax; c = 0, k = 2 is SigSoftmax.
    """

    def __init__(self, vocabulary_size: int, *, c: float, k: float) -> None:
        super().__init__(vocabulary_size)
        self.c = c
        self.k = k

    def transform(self, logits: Tensor) -> Tensor:
        shifted = logits - self.c
        # The framework's softplus turns linear at a threshold of 20, 2e-9 too early for float64.
        return self.k * shifted + self.c - (self.k - 1) * softplus(shifted, threshold=40.0)

    def value_and_slope_(self, logits_NV: Tensor, slope_NV: Tensor) -> None:
        shifted_NV = logits_NV.sub_(self.c)
        softplus_NV = torch.logaddexp(shifted_NV, shifted_NV.new_zeros(()), out=slope_NV)
        shifted_NV.mul_(self.k).sub_(softplus_NV, alpha=self.k - 1)
        # f' = k - (k - 1) sigmoid, and 1 - sigmoid(t) = exp(-softplus(t)): one exponential, no second buffer.
        softplus_NV.neg_().exp_().mul_(self.k - 1).add_(1.0)


class SigSoftmax(GeneralizedSigSoftmax):
    """log_softmax(2x - ln(1 + e^x)) (Kanai et al. 2018)."""

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__(vocabulary_size, c=0.0, k=2.0)
