"""Texts read by several models at once: what each of them would give alone.

Shapes: G models, T time steps, B batch, N = T B predicted tokens, C width of the contexts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.device import products_in
from trainables.language_model import LanguageModel
from trainables.pulse import PULSE
from trainables.stack.kinds import stacked_model
from trainables.stack.model import StackedModel, stacked_states
from trainables.stack.weights import Weights
from trainables.training import ROWS_PER_LOSS, Trainer, parallel_streams


def valid_losses(trainers: Sequence[Trainer]) -> list[float]:
    """Mean cross-entropy in nats per predicted token of every trainer's model, with the averaged
    weights if it has some: what `mean_loss` gives for each. They validate on the same text in the
    same way, and stand in the order of a stack."""
    evaluation = trainers[0].config.evaluation
    averages = [
        _parameters(trainer.model) if trainer.average is None else trainer.average.tensors
        for trainer in trainers
    ]
    return stacked_losses(
        [trainer.model for trainer in trainers],
        trainers[0].valid,
        batch=evaluation.valid_batch_size,
        window=evaluation.window,
        split="valid",
        weights=averages,
    )


@torch.no_grad()
def stacked_losses(
    models: Sequence[LanguageModel],
    tokens: NDArray[np.int64],
    *,
    batch: int,
    window: int,
    split: str,
    weights: Sequence[Mapping[str, Tensor]] | None = None,
) -> list[float]:
    """What `mean_loss` gives for every model, with these weights in place of its own; they stand
    in the order of a stack."""
    device = _device(models)
    streams_TB = parallel_streams(tokens, batch, device, split=split)
    stacked = _as_one(models, weights)
    total_G = torch.zeros(len(models), dtype=torch.float64, device=device)
    last, predicted, pending = len(streams_TB) - 1, 0, list[Tensor]()
    with products_in("float32", device):
        weight_GVD = stacked.output_weight()
        for end, contexts_GTBC in _windows(models, stacked, streams_TB[:last], window):
            pending.append(contexts_GTBC)
            if (end - predicted) * batch >= ROWS_PER_LOSS or end == last:
                targets_N = streams_TB[predicted + 1 : end + 1].reshape(-1)
                targets_GN = targets_N.expand(len(models), -1)
                rows = targets_GN, torch.ones_like(targets_GN, dtype=contexts_GTBC.dtype)
                total_G += stacked.losses(torch.cat(pending, 1), weight_GVD, rows).double()
                predicted = end
                pending.clear()
    return [float(total) / (last * batch) for total in total_G.tolist()]


@torch.no_grad()
def stacked_context_windows(
    models: Sequence[LanguageModel], tokens: NDArray[np.int64], *, window: int
) -> Iterator[Tensor]:
    """What the output layers see after each token, G x T x C a window: read as one stream, a window
    after another, the hidden states carried over where there are any. The models stand in the order
    of a stack."""
    streams_TB = torch.tensor(tokens, device=_device(models)).unsqueeze(1)
    for _, contexts_GTBC in _windows(models, _as_one(models), streams_TB, window):
        yield contexts_GTBC.squeeze(2)


def _windows(
    models: Sequence[LanguageModel], stacked: StackedModel, streams_TB: Tensor, window: int
) -> Iterator[tuple[int, Tensor]]:
    """Where each window ends, and its contexts, G x T x B x C."""
    states = stacked_states([model.zero_state(streams_TB.shape[1]) for model in models])
    end = 0
    for window_TB in streams_TB.split(window):
        PULSE.touch()
        end += len(window_TB)
        lengths_G = torch.full((len(models),), len(window_TB), device=window_TB.device)
        contexts = stacked.contexts(window_TB.expand(len(models), -1, -1), states, lengths_G)
        states = contexts.states
        yield end, contexts.dropped_GTBC


def _as_one(
    models: Sequence[LanguageModel], weights: Sequence[Mapping[str, Tensor]] | None = None
) -> StackedModel:
    return stacked_model(models, Weights(models, weights or [_parameters(m) for m in models]))


def _parameters(model: LanguageModel) -> Mapping[str, Tensor]:
    return {name: parameter.detach() for name, parameter in model.named_parameters()}


def _device(models: Sequence[LanguageModel]) -> str:
    return str(models[0].embedding_VD.device)
