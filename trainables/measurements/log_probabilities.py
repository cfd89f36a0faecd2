"""The log-P matrix of a trained model, row by row: one row a test context, one column a word.

Shapes: N rows (contexts), C width of the context vector, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.language_model.awd_lstm import AwdLstm

ROWS_PER_CHUNK = 1024


@torch.no_grad()
def context_vectors(model: AwdLstm, tokens: NDArray[np.int64], *, window: int) -> Tensor:
    """What the output layer sees after each token, N x C: read as one stream, the hidden state carried over."""
    model.eval()
    stream_TB = torch.tensor(tokens, device=model.embedding_VD.device).unsqueeze(1)
    state = model.zero_state(1)
    parts = []
    for window_TB in stream_TB.split(window):
        contexts = model.contexts(window_TB, state)
        state = contexts.state
        parts.append(contexts.dropped_TBC.squeeze(1))
    return torch.cat(parts)


@torch.no_grad()
def log_probability_rows(model: AwdLstm, contexts_NC: Tensor) -> Iterator[NDArray[np.float32]]:
    """Chunks of the log-P matrix (rows x V), in the precision of the model."""
    for chunk in contexts_NC.split(ROWS_PER_CHUNK):
        yield model.output.log_probabilities(chunk, model.embedding_VD).cpu().numpy()
