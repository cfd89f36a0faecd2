"""Base of all output layers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainables.config import chunk_rows
from trainables.errors import UserError
from trainables.output_layers.cross_entropy import linear_cross_entropy
from trainables.output_layers.pointwise import Identity, Pointwise, centred_bias


@dataclass(frozen=True, kw_only=True)
class LayerShape:
    """Sizes of an output layer."""

    vocabulary_size: int
    embedding_width: int
    context_width: int
    """Equals `embedding_width` unless the layer maps one width to the other."""


class OutputLayer(nn.Module, ABC):
    """The last layer of a language model. Its methods receive the V x D output weights."""

    product_dtype: torch.dtype | None = None
    """Dtype of matrix factors in training; None means no cast."""

    def cast(self, factor: Tensor) -> Tensor:
        """Return a matrix product's factor, cast to `product_dtype` in training."""
        return (
            factor.to(self.product_dtype)
            if self.training and self.product_dtype is not None
            else factor
        )

    @abstractmethod
    def log_probabilities(self, hidden_NC: Tensor, weight_VD: Tensor) -> Tensor:
        """Return log P of every word after every context, N x V, in the dtype of `hidden_NC`."""

    @abstractmethod
    def loss(
        self,
        hidden_TBC: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        masks: torch.Generator | None = None,
    ) -> Tensor:
        """Return the mean cross-entropy of the targets in nats, a scalar.

        Never holds more than one chunk of the N x V logits. Without `masks`, there is no dropout.
        Layers of this package also accept N x V probabilities as targets.
        """

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the initial weights. The default does nothing."""

    def scale_start(self, log_share_V: Tensor, hidden_deviation: float) -> None:
        """Rescale the initial weights, given the standard deviation of hidden states.

        Log P without a context is then about `log_share_V`. The default does nothing.
        """


def bent_log_softmax_(function: Pointwise, logits_NV: Tensor) -> Tensor:
    """Return log_softmax(f(x)) per row. Without autograd, overwrites the logits."""
    if torch.is_grad_enabled():
        return torch.log_softmax(function(logits_NV), dim=1)
    rows = chunk_rows(logits_NV.shape[1], 0, logits_NV.element_size(), logits_NV.device.type)
    chunk_pass = function.chunk_pass(function, logits_NV[:rows])
    for chunk_nV in logits_NV.split(rows):
        chunk_pass.apply_(chunk_nV)
    return torch.log_softmax(logits_NV, dim=1)


class PointwiseSoftmax(OutputLayer):
    """log_softmax(f(W h + b)) for an increasing function f of one logit, by default the identity.

    With the identity, log P has rank at most D + 2: one for the bias, one for the normaliser.
    """

    def __init__(self, shape: LayerShape, function: Pointwise | None = None) -> None:
        super().__init__()
        if shape.context_width != shape.embedding_width:
            raise UserError(
                "model.context_width: this output layer needs the width of the embedding, "
                f"{shape.embedding_width}, got {shape.context_width}. "
                "Change it, or use a layer that maps one width to the other."
            )
        self.bias_V = nn.Parameter(torch.zeros(shape.vocabulary_size))
        self.function = function or Identity()

    def log_probabilities(self, hidden_NC: Tensor, weight_VD: Tensor) -> Tensor:
        """Return log P, N x V."""
        logits_NV = torch.addmm(self.bias_V, hidden_NC, weight_VD.t())
        return bent_log_softmax_(self.function, logits_NV)

    def loss(
        self,
        hidden_TBC: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        masks: torch.Generator | None = None,  # noqa: ARG002
    ) -> Tensor:
        """Return the mean cross-entropy in nats."""
        hidden_NC = self.cast(hidden_TBC).flatten(0, -2)
        return linear_cross_entropy(hidden_NC, weight_VD, self.bias_V, targets_N, self.function)

    def initialise(self, generator: torch.Generator) -> None:
        """Draw f's parameters."""
        self.function.initialise(generator)

    def scale_start(self, log_share_V: Tensor, hidden_deviation: float) -> None:  # noqa: ARG002
        """Set the biases so that log P is about `log_share_V`."""
        self.bias_V.data = centred_bias(self.function, log_share_V)
