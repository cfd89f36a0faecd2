"""What all output layers have in common: hidden states in, log-probabilities or a training loss out.

Shapes: N rows (contexts), D width of the embeddings, V vocabulary.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import torch
from torch import Tensor, nn

from trainables.output_layers.linear_cross_entropy import linear_cross_entropy


class OutputLayer(nn.Module, ABC):
    """The last layer of a language model. Its V x D weights are the embedding's and passed in; it owns the rest."""

    @abstractmethod
    def log_probabilities(self, hidden_ND: Tensor, weight_VD: Tensor) -> Tensor:
        """log P of every word after every context, N x V, in the dtype of `hidden_ND`."""

    @abstractmethod
    def loss(self, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
        """Mean cross-entropy of the targets in nats, a scalar; never holds more than a chunk of N x V."""


class PointwiseSoftmax(OutputLayer):
    """log_softmax(f(W h + b)) for an increasing function f of one logit; softmax itself where f is the identity."""

    def __init__(self, vocabulary_size: int) -> None:
        super().__init__()
        self.bias_V = nn.Parameter(torch.zeros(vocabulary_size))

    @property
    def is_identity(self) -> bool:
        """Whether f(x) = x, so that neither f nor its slope need be computed."""
        return False

    @abstractmethod
    def transform(self, logits: Tensor) -> Tensor:
        """f of every logit."""

    @abstractmethod
    def value_and_slope_(self, logits_NV: Tensor, slope_NV: Tensor) -> None:
        """Overwrite `logits_NV` with f (up to a constant) and `slope_NV` with f'."""

    def log_probabilities(self, hidden_ND: Tensor, weight_VD: Tensor) -> Tensor:
        logits_NV = torch.addmm(self.bias_V, hidden_ND, weight_VD.t())
        return torch.log_softmax(self.transform(logits_NV), dim=1)

    def loss(self, hidden_ND: Tensor, weight_VD: Tensor, targets_N: Tensor) -> Tensor:
        return linear_cross_entropy(hidden_ND, weight_VD, self.bias_V, targets_N, self)
