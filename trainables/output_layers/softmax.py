"""The plain softmax."""

from __future__ import annotations

from torch import Tensor

from trainables.output_layers.base import PointwiseSoftmax


class Softmax(PointwiseSoftmax):
    """log_softmax(x). The rank of its log-P matrix is at most d + 2: W h, the bias, the normaliser."""

    @property
    def is_identity(self) -> bool:
        return True

    def transform(self, logits: Tensor) -> Tensor:
        return logits

    def value_and_slope_(self, logits_NV: Tensor, slope_NV: Tensor) -> None:  # noqa: ARG002  (f(x) = x stays as it is)
        slope_NV.fill_(1.0)
