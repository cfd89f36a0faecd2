"""Averaged SGD: when it starts, and the running mean of the weights.

Sources: Merity et al. 2018 (NT-ASGD), Takase et al. 2018 and the AAAI-2021 paper (ET-ASGD).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from trainables.config import AveragingConfig, EtAsgdConfig, NtAsgdConfig


def should_switch(config: AveragingConfig, losses: Sequence[float]) -> bool:
    """Return whether to switch to averaged SGD, given the validation losses of all epochs so far.

    ET-ASGD switches after a fixed epoch. NT-ASGD switches if the last loss exceeds the lowest loss
    from more than n epochs earlier.
    """
    match config:
        case EtAsgdConfig(switch_epoch=switch_epoch):
            return len(losses) >= switch_epoch
        case NtAsgdConfig(nonmonotone_interval=n):
            return losses[-1] > min(losses[: -1 - n], default=math.inf)


class WeightAverage:
    """Mean of a model's parameters over all steps since averaging began."""

    def __init__(self, model: nn.Module) -> None:
        self.steps = 0
        self.tensors: dict[str, Tensor] = {
            name: p.detach().clone() for name, p in model.named_parameters()
        }

    @torch.no_grad()
    def update(self, model: nn.Module) -> None:
        """Add the parameters after one more step to the mean."""
        parameters: dict[str, Tensor] = dict(model.named_parameters())
        averages = [self.tensors[name] for name in parameters]
        self.steps += 1
        torch._foreach_lerp_(averages, list(parameters.values()), 1.0 / self.steps)


@contextmanager
def weights_swapped(model: nn.Module, average: WeightAverage | None) -> Iterator[None]:
    """Give the model the averaged weights, if any, inside the context."""
    weights = {name: parameter.data for name, parameter in model.named_parameters()}
    try:
        if average is not None:
            _set_weights(model, average.tensors)
        yield
    finally:
        _set_weights(model, weights)


def _set_weights(model: nn.Module, tensors: dict[str, Tensor]) -> None:
    for name, parameter in model.named_parameters():
        parameter.data = tensors[name]
