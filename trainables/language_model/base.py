"""What all language models have in common: tokens in, context vectors out, and an output layer
behind them.

Shapes: T time, B batch, V vocabulary, D width of the embedding, C width of the context vector, H
hidden width."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainables.device import Precision, network_dtype
from trainables.language_model.head import OutputHead
from trainables.output_layers import OutputLayer

LstmState = tuple[Tensor, Tensor]
"""h and c of one layer, each 1 x B x H."""


@dataclass(frozen=True)
class Contexts:
    """The context vectors of one window."""

    dropped_TBC: Tensor
    """What the output layer sees: with the last dropout in training."""
    undropped_TBC: Tensor
    """Before that dropout."""
    state: list[LstmState]
    """What the next window starts from, cut off from the gradient; empty where windows are
    independent."""


class LanguageModel(nn.Module, ABC):
    """`contexts` turns tokens into context vectors; `output`, with `output_weight`, those into log
    P or a loss."""

    def __init__(
        self,
        embedding_VD: nn.Parameter,
        layers: Iterable[nn.Module],
        output: OutputLayer,
        head: OutputHead | None,
    ) -> None:
        """Without a head, the output weights are the embedding."""
        super().__init__()
        self.embedding_VD = embedding_VD
        self.layers = nn.ModuleList(layers)
        self.output = output
        self.head = head
        self.precision: Precision = "float32"

    def output_weight(self) -> Tensor:
        """The weights that the output layer is passed, V x D: the embedding, or the head's;
        differentiable."""
        return self.embedding_VD if self.head is None else self.head.weight()

    @torch.no_grad()
    def exact_output_weight(self) -> Tensor:
        """The same in float64. Of a head A B, too, whose product in float32 has a full rank by its
        rounding."""
        return (
            self.embedding_VD.double()
            if self.head is None
            else copy.deepcopy(self.head).double().weight()
        )

    def train_in(self, precision: Precision) -> None:
        """From now on, matrix products in training mode are in this precision (see
        `TrainingConfig.precision`); TF32 is torch's to make (see
        `trainables.device.products_in`)."""
        self.precision = precision
        self.output.product_dtype = torch.bfloat16 if precision == "bf16" else None

    def mode(self, masks: torch.Generator | None) -> tuple[torch.Generator | None, torch.dtype]:
        """Return the generator of dropouts, None outside training, and the dtype of the products
        between embedding and output layer. Raise ValueError if a model in training mode has no
        generator."""
        if not self.training:
            return None, self.embedding_VD.dtype
        if masks is None:
            raise ValueError("a model in training mode needs a generator for its dropout masks")
        return masks, network_dtype(self.precision, self.embedding_VD)

    @abstractmethod
    def initialise(self, generator: torch.Generator) -> None:
        """Draw the starting weights."""

    @abstractmethod
    def zero_state(self, batch: int) -> list[LstmState]:
        """The state before the first token."""

    @abstractmethod
    def contexts(
        self, tokens_TB: Tensor, state: list[LstmState], masks: torch.Generator | None = None
    ) -> Contexts:
        """Read a window of tokens. In training mode every dropout draws its masks from `masks`, in
        a fixed order.

        Raises ValueError where there is no such generator in training mode.
        """
