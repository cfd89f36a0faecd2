"""Validation of several models at once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack

import torch
from torch import Tensor

from trainables.device import products_in
from trainables.stack.kinds import stacked_model
from trainables.stack.lstm import StackedState
from trainables.stack.model import StackedContexts, stacked_states
from trainables.stack.weights import Weights
from trainables.training import Trainer, parallel_streams, weights_swapped, windows_read


@torch.no_grad()
def valid_losses(trainers: Sequence[Trainer]) -> list[float]:
    """Return each model's validation loss (see `mean_loss`), with averaged weights if they exist.

    All trainers have the same validation text and settings, and are in the order of a stack.
    """
    models, evaluation = [trainer.model for trainer in trainers], trainers[0].config.evaluation
    device, batch = trainers[0].runtime.device, evaluation.valid_batch_size
    streams_TB = parallel_streams(trainers[0].valid, batch, device)
    state = stacked_states([model.zero_state(batch) for model in models])
    total_G = torch.zeros(len(models), dtype=torch.float64, device=device)
    with ExitStack() as swaps, products_in("float32", device):
        for trainer in trainers:
            swaps.enter_context(weights_swapped(trainer.model, trainer.average))
        stack = stacked_model(models, Weights(models))
        weight_GVD = stack.output_weight()

        def read(window_TB: Tensor, state: list[StackedState]) -> StackedContexts:
            lengths_G = torch.full((len(models),), len(window_TB), device=device)
            return stack.contexts(window_TB.expand(len(models), -1, -1), state, lengths_G)

        for contexts, targets_N in windows_read(streams_TB, evaluation.window, state, read):
            hidden_GTBC = torch.cat(
                [window_contexts.dropped_GTBC for window_contexts in contexts], 1
            )
            targets_GN = targets_N.expand(len(models), -1)
            rows = targets_GN, torch.ones_like(targets_GN, dtype=weight_GVD.dtype)
            total_G += stack.losses(hidden_GTBC, weight_GVD, rows).double()
    return [total / ((len(streams_TB) - 1) * batch) for total in total_G.tolist()]
