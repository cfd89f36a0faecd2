"""Validation of several models at once, each with the weights that it would be validated with alone."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from trainables.device import products_in
from trainables.pulse import PULSE
from trainables.stack.model import StackedModel, stacked_states
from trainables.stack.weights import Weights
from trainables.training import ROWS_PER_LOSS, Trainer, parallel_streams


@torch.no_grad()
def valid_losses(trainers: Sequence[Trainer]) -> list[float]:
    """Mean cross-entropy in nats per predicted token of every trainer's model, averaged where it is: what `mean_loss`
    gives for each. They validate on the same text in the same way, and stand in the order of a stack."""
    first = trainers[0]
    evaluation, device = first.config.evaluation, str(first.model.embedding_VD.device)
    batch, window = evaluation.valid_batch_size, evaluation.window
    models = [trainer.model for trainer in trainers]
    averages = [trainer.average for trainer in trainers]
    tensors = [
        dict(alone.named_parameters()) if average is None else average.tensors
        for alone, average in zip(models, averages, strict=True)
    ]
    model = StackedModel(models, Weights(models, tensors))
    streams_TB = parallel_streams(first.valid, batch, device, split="valid")
    states = stacked_states([alone.zero_state(batch) for alone in models])
    total_G = torch.zeros(len(models), dtype=torch.float64, device=device)
    last, predicted, pending = len(streams_TB) - 1, 0, list[Tensor]()
    with products_in("float32", device):
        for start in range(0, last, window):
            PULSE.touch()
            end = min(start + window, last)
            lengths_G = torch.full((len(models),), end - start, device=device)
            tokens_GTB = streams_TB[start:end].expand(len(models), -1, -1)
            contexts = model.contexts(tokens_GTB, states, lengths_G)
            states = contexts.states
            pending.append(contexts.h3)
            if (end - predicted) * batch >= ROWS_PER_LOSS or end == last:
                targets_N = streams_TB[predicted + 1 : end + 1].reshape(-1)
                rows = targets_N.expand(len(models), -1), contexts.h3.new_ones(len(models), len(targets_N))
                total_G += model.losses(torch.cat(pending, 1), rows).double()
                predicted = end
                pending.clear()
    return [float(total) / (last * batch) for total in total_G.tolist()]
