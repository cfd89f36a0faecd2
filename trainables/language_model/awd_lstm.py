"""AWD-LSTM (Merity et al. 2018): three LSTM layers with dropout everywhere, output weights tied to the embedding.

Shapes: T time, B batch, V vocabulary, D width of the embedding, C width of the context vector, H hidden width.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding

from trainables.config import LanguageModelConfig, OutputLayerConfig
from trainables.device import Precision, lstm_dtype
from trainables.draws import drop_connect, gaussian_noise, locked_dropout, word_dropout
from trainables.output_layers import LayerShape, OutputLayer, build_output_layer

LstmState = tuple[Tensor, Tensor]
"""h and c of one layer, each 1 x B x H."""


class LstmLayer(nn.Module):
    """One LSTM layer whose hidden-to-hidden weights can be given for each call.

    The framework's own module keeps flat references to its weights and, in some versions, silently ignores a dropped
    copy of them; calling its kernel with the weights as arguments leaves nothing to ignore.
    """

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
        self, inputs_TBI: Tensor, state: LstmState, weight_hh: Tensor, precision: Precision
    ) -> tuple[Tensor, LstmState]:
        """Outputs T x B x H and the state after the last step, in the dtype of the inputs.

        Cast here, as torch's autocast on a GPU casts an LSTM to float16 whatever dtype it is told.
        """
        dtype = lstm_dtype(precision, self.weight_ih)
        weights = [self.weight_ih, weight_hh, self.bias_ih, self.bias_hh]
        if dtype == inputs_TBI.dtype:
            return self._run(inputs_TBI, state, weights)
        inputs, h, c, *weights = (tensor.to(dtype) for tensor in (inputs_TBI, *state, *weights))
        outputs, (h, c) = self._run(inputs, (h, c), weights)
        return outputs.to(inputs_TBI.dtype), (h.to(inputs_TBI.dtype), c.to(inputs_TBI.dtype))

    def _run(self, inputs_TBI: Tensor, state: LstmState, weights: list[Tensor]) -> tuple[Tensor, LstmState]:
        outputs_TBH, h, c = torch.lstm(inputs_TBI, state, weights, True, 1, 0.0, self.training, False, False)
        dtype = inputs_TBI.dtype
        assert outputs_TBH.dtype == h.dtype == c.dtype == dtype, f"an LSTM in {dtype} gave {outputs_TBH.dtype}"
        return outputs_TBH, (h, c)


@dataclass(frozen=True)
class Contexts:
    """The context vectors of one window."""

    h3_TBC: Tensor
    """Output of the last LSTM layer as it is."""
    dropped_TBC: Tensor
    """The same after locked dropout: what the output layer sees. Outside training, the same tensor."""
    state: list[LstmState]
    """What the next window starts from, cut off from the gradient."""


class AwdLstm(nn.Module):
    """The language model: `contexts` turns tokens into context vectors, `output` turns those into log P or a loss.

    The output weights are the embedding matrix.
    """

    def __init__(self, config: LanguageModelConfig, output: OutputLayerConfig, vocabulary_size: int) -> None:
        super().__init__()
        self.config = config
        self.embedding_VD = nn.Parameter(torch.empty(vocabulary_size, config.embedding_width))
        self.layers = nn.ModuleList(LstmLayer(into, out) for into, out in config.layer_widths)
        shape = LayerShape(
            vocabulary_size=vocabulary_size,
            embedding_width=config.embedding_width,
            context_width=config.context_width,
        )
        self.output: OutputLayer = build_output_layer(output, shape)
        self.precision: Precision = "float32"

    def train_in(self, precision: Precision) -> None:
        """From now on, matrix products in training mode are in this precision (see `TrainingConfig.precision`); TF32 is
        torch's to make (see `trainables.device.products_in`)."""
        self.precision = precision
        self.output.product_dtype = torch.bfloat16 if precision == "bf16" else None

    def initialise(self, generator: torch.Generator) -> None:
        """Draw the starting weights: embedding uniform(-0.1, 0.1), LSTM layers as the framework's, the output layer's
        own as it says, its bias 0."""
        nn.init.uniform_(self.embedding_VD, -0.1, 0.1, generator=generator)
        for layer in self.layers:
            assert isinstance(layer, LstmLayer)
            layer.initialise(generator)
        self.output.initialise(generator)

    def zero_state(self, batch: int) -> list[LstmState]:
        """The state before the first token."""
        zeros = [self.embedding_VD.new_zeros(1, batch, width) for _, width in self.config.layer_widths]
        return [(zero, zero) for zero in zeros]

    def contexts(self, tokens_TB: Tensor, state: list[LstmState], masks: torch.Generator | None = None) -> Contexts:
        """Read a window of tokens. In training mode every dropout draws its masks from `masks`, in a fixed order.

        The states have the dtype of the weights, whatever the precision of the products.
        """
        if self.training and masks is None:
            raise ValueError("a model in training mode needs a generator for its dropout masks")
        generator, precision = (masks, self.precision) if self.training else (None, "float32")
        config = self.config
        embedding_VD = word_dropout(self.embedding_VD, config.dropout_embedding_matrix, generator)
        embedded = gaussian_noise(embedding(tokens_TB, embedding_VD), config.embedding_noise, generator)
        hidden = locked_dropout(embedded, config.dropout_embedding, generator)
        undropped = hidden
        new_state = []
        rates = (config.dropout_hidden, config.dropout_hidden, config.dropout_output)
        for layer, layer_state, rate in zip(self.layers, state, rates, strict=True):
            assert isinstance(layer, LstmLayer)
            weight_hh = drop_connect(layer.weight_hh, config.dropconnect, generator)
            undropped, (h, c) = layer(hidden, layer_state, weight_hh, precision)
            hidden = locked_dropout(undropped, rate, generator)
            new_state.append((h.detach(), c.detach()))
        return Contexts(h3_TBC=undropped, dropped_TBC=hidden, state=new_state)
