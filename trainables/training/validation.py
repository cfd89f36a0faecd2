"""Perplexity by the protocol: windows of fixed length, hidden state carried over, every token predicted once."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.language_model import AwdLstm
from trainables.training.batches import parallel_streams

ROWS_PER_LOSS = 1024
"""Contexts of so many windows go through the output layer together, since each call of its loss has a fixed cost."""


@torch.no_grad()
def mean_loss(model: AwdLstm, tokens: NDArray[np.int64], *, batch: int, window: int, split: str) -> float:
    """Mean cross-entropy in nats per predicted token; the first token of each parallel stream is not predicted.

    The model is put into evaluation mode and left in it.
    """
    model.eval()
    streams_TB = parallel_streams(tokens, batch, str(model.embedding_VD.device), split=split)
    state = model.zero_state(batch)
    total = torch.zeros((), dtype=torch.float64, device=streams_TB.device)
    last = len(streams_TB) - 1
    predicted, pending = 0, list[Tensor]()
    for start in range(0, last, window):
        end = min(start + window, last)
        contexts = model.contexts(streams_TB[start:end], state)
        state = contexts.state
        pending.append(contexts.dropped_TBC)
        if (end - predicted) * batch >= ROWS_PER_LOSS or end == last:
            hidden_N1C = torch.cat(pending).flatten(0, 1).unsqueeze(1)
            targets_N = streams_TB[predicted + 1 : end + 1].reshape(-1)
            total += model.output.loss(hidden_N1C, model.embedding_VD, targets_N).double() * len(targets_N)
            predicted = end
            pending.clear()
    return total.item() / (last * batch)
