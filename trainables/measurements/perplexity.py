"""Perplexity by the protocol: windows of fixed length, hidden state carried over, every token predicted once."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from trainables.language_model.awd_lstm import AwdLstm
from trainables.training.batches import parallel_streams, windows


@torch.no_grad()
def mean_loss(model: AwdLstm, tokens: NDArray[np.int64], *, batch: int, window: int, what: str) -> float:
    """Mean cross-entropy in nats per predicted token; the first token of each parallel stream is not predicted.

    The model is put into evaluation mode and left in it.
    """
    model.eval()
    streams_TB = parallel_streams(tokens, batch, str(model.embedding_VD.device), what=what)
    state = model.zero_state(batch)
    total = torch.zeros((), dtype=torch.float64, device=streams_TB.device)
    predicted = 0
    for inputs_TB, targets_N in windows(streams_TB, window):
        contexts = model.contexts(inputs_TB, state)
        state = contexts.state
        loss = model.output.loss(contexts.dropped_TBC, model.embedding_VD, targets_N)
        total += loss.double() * len(targets_N)
        predicted += len(targets_N)
    return total.item() / predicted
