"""AWD-LSTM (Merity et al. 2018): three LSTM layers with dropout everywhere. The output weights are
the embedding, or with `head_rank` a product A B of their own.

Shapes: T time, B batch, V vocabulary, D width of the embedding, C width of the context vector, H
hidden width."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from trainables.config import LanguageModelConfig, OutputLayerConfig
from trainables.draws import drop_connect, gaussian_noise, locked_dropout, word_dropout
from trainables.language_model.base import Contexts, LanguageModel, LstmState
from trainables.language_model.head import OutputHead
from trainables.output_layers import LayerShape, build_output_layer

EMBEDDING_BOUND = 0.1
"""Entries start uniform within it."""


class LstmLayer(nn.Module):
    """One LSTM layer whose hidden-to-hidden weights can be given for each call.

    The framework's own module keeps flat references to its weights and, in some versions, silently
    ignores a dropped copy of them; calling its kernel with the weights as arguments leaves nothing
    to ignore."""

    def __init__(self, input_width: int, hidden_width: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_width, input_width))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_width, hidden_width))
        self.bias_ih = nn.Parameter(torch.empty(4 * hidden_width))
        self.bias_hh = nn.Parameter(torch.empty(4 * hidden_width))

    def initialise(self, generator: torch.Generator) -> None:
        """Uniform within 1 / sqrt(hidden width), as the framework starts its own LSTM."""
        bound = self.weight_hh.shape[1] ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(
        self, inputs_TBI: Tensor, state: LstmState, weight_hh: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, LstmState]:
        """Outputs T x B x H and the state after the last step, in the dtype of the inputs; products
        are in `dtype`.

        Cast here, as torch's autocast on a GPU casts an LSTM to float16 whatever dtype it is told.
        """
        weights = self.weight_ih, weight_hh, self.bias_ih, self.bias_hh
        inputs, h, c, *cast = (tensor.to(dtype) for tensor in (inputs_TBI, *state, *weights))
        results = torch.lstm(inputs, (h, c), cast, True, 1, 0.0, self.training, False, False)
        assert all(result.dtype == dtype for result in results)
        outputs_TBH, h, c = (result.to(inputs_TBI.dtype) for result in results)
        return outputs_TBH, (h, c)


class AwdLstm(LanguageModel):
    """The language model of the papers."""

    def __init__(
        self, config: LanguageModelConfig, output: OutputLayerConfig, vocabulary_size: int
    ) -> None:
        width, rank = config.embedding_width, config.head_rank
        shape = LayerShape(
            vocabulary_size=vocabulary_size,
            embedding_width=width,
            context_width=config.context_width,
        )
        super().__init__(
            nn.Parameter(torch.empty(vocabulary_size, width)),
            [LstmLayer(into, out) for into, out in config.layer_widths],
            build_output_layer(output, shape),
            None if rank is None else OutputHead(vocabulary_size, width, rank),
        )
        self.config = config

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the starting weights: embedding uniform(-0.1, 0.1), LSTM layers as the framework's,
        the output layer's own as it says, its bias 0; last of all a head, whose product has the
        embedding's deviation."""
        nn.init.uniform_(self.embedding_VD, -EMBEDDING_BOUND, EMBEDDING_BOUND, generator=generator)
        for layer in self.layers:
            assert isinstance(layer, LstmLayer)
            layer.initialise(generator)
        self.output.initialise(generator)
        if self.head is not None:
            self.head.initialise(EMBEDDING_BOUND / math.sqrt(3), generator)

    def zero_state(self, batch: int) -> list[LstmState]:
        zeros = [
            self.embedding_VD.new_zeros(1, batch, width) for _, width in self.config.layer_widths
        ]
        return [(zero, zero) for zero in zeros]

    def contexts(
        self, tokens_TB: Tensor, state: list[LstmState], masks: torch.Generator | None = None
    ) -> Contexts:
        """As every language model.

        The states have the dtype of the weights, whatever the precision of the products.
        """
        generator, dtype = self.mode(masks)
        config = self.config
        embedding_VD = word_dropout(self.embedding_VD, config.dropout_embedding_matrix, generator)
        embedded = gaussian_noise(
            embedding(tokens_TB, embedding_VD), config.embedding_noise, generator
        )
        hidden = locked_dropout(embedded, config.dropout_embedding, generator)
        undropped = hidden
        new_state = []
        rates = (config.dropout_hidden, config.dropout_hidden, config.dropout_output)
        for layer, layer_state, rate in zip(self.layers, state, rates, strict=True):
            assert isinstance(layer, LstmLayer)
            weight_hh = drop_connect(layer.weight_hh, config.dropconnect, generator)
            undropped, (h, c) = layer(hidden, layer_state, weight_hh, dtype)
            hidden = locked_dropout(undropped, rate, generator)
            new_state.append((h.detach(), c.detach()))
        return Contexts(hidden, undropped, new_state)
