"""Initial weights from which a narrow model learns within minutes, with any output layer.

With the papers' initial weights, each LSTM layer shrinks differences between contexts to a third or
less. A full-width model has hundreds of thousands of steps to recover. A narrow model with a
thousand steps stays near the perplexity of word frequencies, most of all if its output layer passes
little signal. That would bias a comparison of layers.

Three changes, equal for every output layer:

- Rows of the embedding, and of a separate head, get their norm at the papers' width of 400.
- Input weights are rescaled: a word contributes variance 1 to the first LSTM layer's gates, and
  deeper layers respond to the previous layer. So are a mixture's weights of context vectors.
- The output bias holds train word frequencies. Otherwise the context vectors learn the frequencies
  and stay saturated.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from trainables.language_model import EMBEDDING_BOUND, AwdLstm, LanguageModel

EMBEDDING_WIDTH = 400
OUTPUT_DEVIATION = 0.5
"""Assumed standard deviation of an LSTM's outputs. It really starts at 0.2, but with 0.2, output
layers with steep functions learn worse; 0.3 to 1 give similar results (Penn Treebank, scale
`quick`)."""


@torch.no_grad()
def scale_start(model: AwdLstm, train_tokens: NDArray[np.int64]) -> None:
    """Rescale weights from `AwdLstm.initialise`, and set the output bias to word frequencies."""
    width = model.config.embedding_width
    factor = math.sqrt(EMBEDDING_WIDTH / width)
    model.embedding_VD.mul_(factor)
    if model.head is not None:
        model.head.scale_(factor)
    input_deviation = EMBEDDING_BOUND * math.sqrt(EMBEDDING_WIDTH / width / 3)
    for layer, (inputs, outputs) in zip(model.layers, model.config.layer_widths, strict=True):
        drawn_deviation = 1 / math.sqrt(3 * outputs)
        layer.get_parameter("weight_ih").mul_(
            1 / (math.sqrt(inputs) * input_deviation * drawn_deviation)
        )
        input_deviation = OUTPUT_DEVIATION
    start_at_frequencies(model, train_tokens, OUTPUT_DEVIATION)


@torch.no_grad()
def start_at_frequencies(
    model: LanguageModel, train_tokens: NDArray[np.int64], hidden_deviation: float
) -> None:
    """Set the output bias to train word frequencies.

    `hidden_deviation`: standard deviation of the context vectors.
    """
    # Add one, so that a word missing in the train text has a logarithm, too.
    counts_V = np.bincount(train_tokens, minlength=len(model.embedding_VD)) + 1
    log_share_V = torch.tensor(np.log(counts_V / counts_V.sum()), dtype=model.embedding_VD.dtype)
    model.output.scale_start(log_share_V, hidden_deviation)
