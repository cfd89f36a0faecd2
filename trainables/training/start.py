"""Starting weights from which a narrow model learns within minutes, whatever its output layer.

As the papers start it, AWD-LSTM hardly hears its input: from one LSTM layer to the next, what
differs between contexts shrinks to a third or less, and the logits start about equal. A model of
full width has hundreds of thousands of steps to fix that. A narrow one with a thousand steps spends
them near the perplexity of plain word frequencies, the longer the less its output layer lets
through, and layers are then compared by when they leave it.

Three changes, the same for every output layer:
- Rows of the embedding, and of a head of its own rank, have the norm that they have at the papers'
  width of 400, whatever the width.
- The input weights of each LSTM layer are rescaled, so that what a word adds to the first layer's
  gates has a variance of one, and deeper layers hear the one before; so are those that make a
  mixture's context vectors.
- The output bias makes the first predictions the frequencies of the words in the train text,
  through whatever bends the logits; without this the context vectors learn the frequencies,
  saturate, and stay so."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray

from trainables.language_model import EMBEDDING_BOUND, AwdLstm, LanguageModel

EMBEDDING_WIDTH = 400
"""Of the papers."""
OUTPUT_DEVIATION = 0.5
"""Above the 0.2 that an LSTM's outputs have then, so that deeper layers start softer: at 0.2 steep
bends learn worse, from 0.3 to 1 all do about the same (Penn Treebank, scale quick)."""


@torch.no_grad()
def scale_start(model: AwdLstm, train_tokens: NDArray[np.int64]) -> None:
    """Rescale the weights that `AwdLstm.initialise` has drawn, and set the output bias by how often
    words are."""
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
    """Set the output bias by how often words are in the train text; context vectors have this
    standard deviation."""
    # One more of each: a word that the train text lacks has a logarithm, too.
    counts_V = np.bincount(train_tokens, minlength=len(model.embedding_VD)) + 1
    log_share_V = torch.tensor(np.log(counts_V / counts_V.sum()), dtype=model.embedding_VD.dtype)
    model.output.scale_start(log_share_V, hidden_deviation)
