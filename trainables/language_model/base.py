"""Interface of language models: from tokens to context vectors, with an output layer.

Shapes: T time, B batch, V vocabulary, D embedding width, C context width, H hidden width.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainables.config import LanguageModelConfig, OutputLayerConfig, TransformerConfig
from trainables.device import Precision, network_dtype
from trainables.language_model.head import OutputHead
from trainables.output_layers import LayerShape, build_output_layer

LstmState = tuple[Tensor, Tensor]
"""State (h, c) of one LSTM layer, each 1 x B x H."""


@dataclass(frozen=True)
class Contexts:
    """Context vectors of one window."""

    dropped_TBC: Tensor
    """Input of the output layer; in training, after the last dropout."""
    undropped_TBC: Tensor
    """Context vectors before the last dropout."""
    state: list[LstmState]
    """Initial state of the next window, detached; empty if windows are independent."""


class LanguageModel(nn.Module, ABC):
    """A network whose `contexts` maps tokens to context vectors.

    `output` maps context vectors and `output_weight` to log P or a loss.
    """

    def __init__(
        self,
        config: LanguageModelConfig | TransformerConfig,
        output: OutputLayerConfig,
        vocabulary_size: int,
        *,
        layers: Iterable[nn.Module],
        has_head: bool,
    ) -> None:
        super().__init__()
        width = config.embedding_width
        shape = LayerShape(
            vocabulary_size=vocabulary_size,
            embedding_width=width,
            context_width=config.context_width,
        )
        self.embedding_VD = nn.Parameter(torch.empty(vocabulary_size, width))
        self.layers = nn.ModuleList(layers)
        self.output = build_output_layer(output, shape)
        self.head = OutputHead(vocabulary_size, width, config.head_rank) if has_head else None
        self.precision: Precision = "float32"

    def output_weight(self) -> Tensor:
        """Return the output layer's V x D weights, differentiable: the embedding or the head's."""
        return self.embedding_VD if self.head is None else self.head.weight()

    @torch.no_grad()
    def exact_output_weight(self) -> Tensor:
        """Return the output weights in float64.

        In float32, rounding gives a head's product A B full rank.
        """
        return (
            self.embedding_VD.double()
            if self.head is None
            else copy.deepcopy(self.head).double().weight()
        )

    def train_in(self, precision: Precision) -> None:
        """Set the precision of matrix products in training (see `TrainingConfig.precision`).

        TF32 also needs `trainables.device.products_in`.
        """
        self.precision = precision
        self.output.product_dtype = torch.bfloat16 if precision == "bf16" else None

    def mode(self, masks: torch.Generator | None) -> tuple[torch.Generator | None, torch.dtype]:
        """Return the generator of dropout masks (None outside training) and the products' dtype.

        Products in the output layer may have another dtype.
        """
        if not self.training:
            return None, self.embedding_VD.dtype
        if masks is None:
            raise ValueError("a model in training mode needs a generator for its dropout masks")
        return masks, network_dtype(self.precision, self.embedding_VD)

    @abstractmethod
    def initialise(self, generator: torch.Generator) -> None:
        """Draw the initial weights."""

    @abstractmethod
    def zero_state(self, batch: int) -> list[LstmState]:
        """Return the state before the first token."""

    @abstractmethod
    def contexts(
        self, tokens_TB: Tensor, state: list[LstmState], masks: torch.Generator | None = None
    ) -> Contexts:
        """Return a window's contexts. In training, dropouts draw from `masks` in a fixed order.

        Raises ValueError in training mode without `masks`.
        """
