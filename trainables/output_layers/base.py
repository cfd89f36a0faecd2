"""What all output layers have in common: hidden states in, log-probabilities or a training loss
out.

Shapes: T time, B batch, N = T B rows (contexts), C width of the context vectors, D of the
embeddings, V vocabulary."""

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
    """The sizes that an output layer meets."""

    vocabulary_size: int
    embedding_width: int
    """D, of the tied output weights."""
    context_width: int
    """C, of the hidden states; equal to D unless the layer maps one to the other."""


class OutputLayer(nn.Module, ABC):
    """The last layer of a language model. Its V x D weights are the embedding's and passed in; it
    owns the rest."""

    product_dtype: torch.dtype | None = None
    """What the layers of this package cast the factors of their matrix products to in training;
    None: to nothing."""

    def cast(self, factor: Tensor) -> Tensor:
        """The factor of a matrix product as `product_dtype` wants it."""
        return (
            factor.to(self.product_dtype)
            if self.training and self.product_dtype is not None
            else factor
        )

    @abstractmethod
    def log_probabilities(self, hidden_NC: Tensor, weight_VD: Tensor) -> Tensor:
        """log P of every word after every context, N x V, in the dtype of `hidden_NC`."""

    @abstractmethod
    def loss(
        self,
        hidden_TBC: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        masks: torch.Generator | None = None,
    ) -> Tensor:
        """Mean cross-entropy of the targets in nats, a scalar; never holds more than a chunk of N x
        V.

        Dropout of the layer's own draws from `masks`; without it, as outside training, there is
        none. The layers of this package take N x V probabilities in place of the targets' ids, too.
        """

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the starting weights; here, leave them as they are."""

    def scale_start(self, log_share_V: Tensor, hidden_deviation: float) -> None:
        """Rescale the weights that were drawn for hidden states of this standard deviation, and
        make log P about `log_share_V` where they say nothing; here, leave them as they are."""


def bent_log_softmax_(function: Pointwise, logits_NV: Tensor) -> Tensor:
    """log_softmax(f(x)) of every row of logits; outside autograd it uses the logits up, a chunk at
    a time."""
    if torch.is_grad_enabled():
        return torch.log_softmax(function(logits_NV), dim=1)
    rows = chunk_rows(logits_NV.shape[1], 0, logits_NV.element_size(), logits_NV.device.type)
    chunk_pass = function.chunk_pass(logits_NV[:rows])
    for chunk_nV in logits_NV.split(rows):
        chunk_pass.apply_(chunk_nV)
    return torch.log_softmax(logits_NV, dim=1)


class PointwiseSoftmax(OutputLayer):
    """log_softmax(f(W h + b)) for an increasing function f of one logit; the softmax itself where f
    is the identity.

    The rank of the softmax' log-P matrix is at most d + 2: W h, the bias, the normaliser.
    """

    def __init__(self, shape: LayerShape, function: Pointwise | None = None) -> None:
        super().__init__()
        if shape.context_width != shape.embedding_width:
            raise UserError(
                "logits are the hidden state times the embedding, so both have one width; here "
                f"they have {shape.context_width} and {shape.embedding_width}: set "
                "model.context_width to the latter, or use a layer that maps one to the other"
            )
        self.bias_V = nn.Parameter(torch.zeros(shape.vocabulary_size))
        self.function = function or Identity()

    def log_probabilities(self, hidden_NC: Tensor, weight_VD: Tensor) -> Tensor:
        logits_NV = torch.addmm(self.bias_V, hidden_NC, weight_VD.t())
        return bent_log_softmax_(self.function, logits_NV)

    def loss(
        self,
        hidden_TBC: Tensor,
        weight_VD: Tensor,
        targets_N: Tensor,
        masks: torch.Generator | None = None,  # noqa: ARG002
    ) -> Tensor:
        hidden_NC = self.cast(hidden_TBC).flatten(0, -2)
        return linear_cross_entropy(hidden_NC, weight_VD, self.bias_V, targets_N, self.function)

    def initialise(self, generator: torch.Generator) -> None:
        self.function.initialise(generator)

    def scale_start(self, log_share_V: Tensor, hidden_deviation: float) -> None:  # noqa: ARG002
        self.bias_V.data = centred_bias(self.function, log_share_V)
