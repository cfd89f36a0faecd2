"""Perplexity by the protocol: windows of fixed length, hidden state carried over, every token predicted once."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.language_model import AwdLstm
from trainables.training.batches import parallel_streams, windows

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
    predicted, pending, targets = 0, list[Tensor](), list[Tensor]()
    for inputs_TB, targets_N in windows(streams_TB, window):
        contexts = model.contexts(inputs_TB, state)
        state = contexts.state
        pending.append(contexts.dropped_TBC.flatten(0, 1))
        targets.append(targets_N)
        predicted += len(targets_N)
        if sum(map(len, targets)) >= ROWS_PER_LOSS:
            total += _summed_loss(model, pending, targets)
    if targets:
        total += _summed_loss(model, pending, targets)
    return total.item() / predicted


def _summed_loss(model: AwdLstm, pending: list[Tensor], targets: list[Tensor]) -> Tensor:
    """The loss of these contexts, summed over their targets; empties both lists."""
    hidden_N1C, targets_N = torch.cat(pending).unsqueeze(1), torch.cat(targets)
    pending.clear()
    targets.clear()
    return model.output.loss(hidden_N1C, model.embedding_VD, targets_N).double() * len(targets_N)
