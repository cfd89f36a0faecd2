"""AWD-LSTM (Merity et al. 2018): three LSTM layers with dropout everywhere.

Shapes: T time, B batch, I input width, H hidden width, V vocabulary, D embedding width.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from trainables.config import LanguageModelConfig, OutputLayerConfig
from trainables.draws import dropout, gaussian_noise, locked_dropout, word_dropout
from trainables.language_model.base import Contexts, LanguageModel, LstmState

EMBEDDING_BOUND = 0.1
"""Initial embedding entries are uniform between plus and minus this bound."""


class LstmLayer(nn.Module):
    """An LSTM layer that receives its hidden-to-hidden weights at each call.

    torch's LSTM module keeps references to its weights, and some versions ignore a masked copy.
    """

    def __init__(self, input_width: int, hidden_width: int) -> None:
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(4 * hidden_width, input_width))
        self.weight_hh = nn.Parameter(torch.empty(4 * hidden_width, hidden_width))
        self.bias_ih = nn.Parameter(torch.empty(4 * hidden_width))
        self.bias_hh = nn.Parameter(torch.empty(4 * hidden_width))

    def initialise(self, generator: torch.Generator) -> None:
        """Draw weights uniformly within 1 / sqrt(hidden width), as torch's LSTM does."""
        bound = self.weight_hh.shape[1] ** -0.5
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -bound, bound, generator=generator)

    def forward(
        self, inputs_TBI: Tensor, state: LstmState, weight_hh: Tensor, dtype: torch.dtype
    ) -> tuple[Tensor, LstmState]:
        """Return outputs T x B x H and last state, in the inputs' dtype. Products use `dtype`."""
        # These explicit casts replace torch's autocast, which casts a GPU's LSTM to float16.
        weights = self.weight_ih, weight_hh, self.bias_ih, self.bias_hh
        inputs, h, c, *cast_weights = (
            tensor.to(dtype) for tensor in (inputs_TBI, *state, *weights)
        )
        results = torch.lstm(
            inputs, (h, c), cast_weights, True, 1, 0.0, self.training, False, False
        )
        assert all(result.dtype == dtype for result in results)
        outputs_TBH, h, c = (result.to(inputs_TBI.dtype) for result in results)
        return outputs_TBH, (h, c)


class AwdLstm(LanguageModel):
    """AWD-LSTM language model. Output weights are the embedding, or A B with `head_rank`."""

    def __init__(
        self, config: LanguageModelConfig, output: OutputLayerConfig, vocabulary_size: int
    ) -> None:
        super().__init__(
            config,
            output,
            vocabulary_size,
            layers=[LstmLayer(inputs, outputs) for inputs, outputs in config.layer_widths],
            has_head=config.head_rank is not None,
        )
        self.config = config

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the embedding from uniform(-0.1, 0.1), LSTM layers like torch, and the output layer.

        A head is drawn last; entries of its product A B have the embedding's standard deviation.
        """
        nn.init.uniform_(self.embedding_VD, -EMBEDDING_BOUND, EMBEDDING_BOUND, generator=generator)
        for layer in self.layers:
            assert isinstance(layer, LstmLayer)
            layer.initialise(generator)
        self.output.initialise(generator)
        if self.head is not None:
            self.head.initialise(EMBEDDING_BOUND / math.sqrt(3), generator)

    def zero_state(self, batch: int) -> list[LstmState]:
        """Return each LSTM layer's zero state."""
        zeros = [
            self.embedding_VD.new_zeros(1, batch, width) for _, width in self.config.layer_widths
        ]
        return [(zero, zero) for zero in zeros]

    def contexts(
        self, tokens_TB: Tensor, state: list[LstmState], masks: torch.Generator | None = None
    ) -> Contexts:
        """Return context vectors and the next state, both in the dtype of the weights."""
        generator, dtype = self.mode(masks)
        config = self.config
        embedding_VD = word_dropout(self.embedding_VD, config.dropout_embedding_matrix, generator)
        embeddings = gaussian_noise(
            embedding(tokens_TB, embedding_VD), config.embedding_noise, generator
        )
        hidden = locked_dropout(embeddings, config.dropout_embedding, generator)
        outputs = hidden
        new_state = []
        rates = (config.dropout_hidden, config.dropout_hidden, config.dropout_output)
        for layer, layer_state, rate in zip(self.layers, state, rates, strict=True):
            assert isinstance(layer, LstmLayer)
            # DropConnect (Wan et al. 2013).
            weight_hh = dropout(layer.weight_hh, config.dropconnect, generator)
            outputs, (h, c) = layer(hidden, layer_state, weight_hh, dtype)
            hidden = locked_dropout(outputs, rate, generator)
            new_state.append((h.detach(), c.detach()))
        return Contexts(hidden, outputs, new_state)
