"""The validation text read by several models at once.

Shapes: G models, T time steps, B batch, N = T B predicted tokens, C width of the contexts."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import torch
from torch import Tensor

from trainables.device import products_in
from trainables.pulse import PULSE
from trainables.stack.kinds import stacked_model
from trainables.stack.model import stacked_states
from trainables.stack.weights import Weights
from trainables.training import ROWS_PER_LOSS, Trainer, parallel_streams, weights_swapped


@torch.no_grad()
def valid_losses(trainers: Sequence[Trainer]) -> list[float]:
    """Return what `mean_loss` gives for every trainer's model, with the averaged weights if it has
    some. The trainers validate on the same text in the same way, and stand in the order of a
    stack."""
    models, evaluation = [trainer.model for trainer in trainers], trainers[0].config.evaluation
    device, batch = trainers[0].runtime.device, evaluation.valid_batch_size
    streams_TB = parallel_streams(trainers[0].valid, batch, device)
    states = stacked_states([model.zero_state(batch) for model in models])
    total_G = torch.zeros(len(models), dtype=torch.float64, device=device)
    last, end, predicted, pending = len(streams_TB) - 1, 0, 0, list[Tensor]()
    with ExitStack() as swaps, products_in("float32", device):
        for trainer in trainers:
            swaps.enter_context(weights_swapped(trainer.model, trainer.average))
        stacked = stacked_model(models, Weights(models))
        weight_GVD = stacked.output_weight()
        for window_TB in streams_TB[:last].split(evaluation.window):
            PULSE.touch()
            end += len(window_TB)
            lengths_G = torch.full((len(models),), len(window_TB), device=device)
            read = stacked.contexts(window_TB.expand(len(models), -1, -1), states, lengths_G)
            states = read.states
            pending.append(read.dropped_GTBC)
            if (end - predicted) * batch >= ROWS_PER_LOSS or end == last:
                targets_N = streams_TB[predicted + 1 : end + 1].reshape(-1)
                targets_GN = targets_N.expand(len(models), -1)
                rows = targets_GN, torch.ones_like(targets_GN, dtype=weight_GVD.dtype)
                total_G += stacked.losses(torch.cat(pending, 1), weight_GVD, rows).double()
                predicted = end
                pending.clear()
    return [total / (last * batch) for total in total_G.tolist()]
