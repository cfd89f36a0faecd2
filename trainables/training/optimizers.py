"""The optimizer of a training: PyTorch's SGD or Adam without what surrounds them for `torch.compile`.

Every optimizer of PyTorch imports its compiler at the first step, with SymPy and 800 modules: 2 s of each worker
process, and nothing here is compiled. The updates are PyTorch's own, bit by bit.
"""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.optim import SGD, Adam, Optimizer
from typing_extensions import override

from trainables.config import TrainingConfig
from trainables.language_model import AwdLstm
from trainables.output_layers import Pointwise

_add_param_group = inspect.unwrap(Optimizer.add_param_group)
_zero_grad = inspect.unwrap(Optimizer.zero_grad)
_sgd_step = inspect.unwrap(SGD.step)
_adam_step = inspect.unwrap(Adam.step)


class _WithoutCompiler(Optimizer):
    @override
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        _add_param_group(self, param_group)

    @override
    def zero_grad(self, set_to_none: bool = True) -> None:
        _zero_grad(self, set_to_none)


class EagerSGD(_WithoutCompiler, SGD):
    """`torch.optim.SGD`."""

    @override
    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]  # closures are for other methods
        """Update every parameter by its gradient."""
        _sgd_step(self)


class EagerAdam(_WithoutCompiler, Adam):
    """`torch.optim.Adam`."""

    @override
    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """Update every parameter by its gradient and the moments of those before."""
        _adam_step(self)


def optimizer_of(model: AwdLstm, training: TrainingConfig) -> EagerSGD | EagerAdam:
    """The optimizer of this training; functions may have a learning rate of their own."""
    groups = _parameter_groups(model, training.learning_rate)
    if training.optimizer == "adam":
        # Fused: one kernel a parameter in place of a dozen.
        return EagerAdam(groups, weight_decay=training.weight_decay, fused=True)
    return EagerSGD(groups, weight_decay=training.weight_decay)


def _parameter_groups(model: AwdLstm, learning_rate: float) -> list[dict[str, Any]]:
    """The model's parameters, and apart from them those of functions that have a learning rate of their own."""
    rates: dict[torch.nn.Parameter, float] = {}
    for module in model.modules():
        if isinstance(module, Pointwise) and (rate := module.own_learning_rate()) is not None:
            for parameter in module.parameters():
                # A function may hold another one, which comes later: the outer one's rate is for both.
                rates.setdefault(parameter, rate)
    groups = [(learning_rate, [parameter for parameter in model.parameters() if parameter not in rates])]
    groups += [(rate, [p for p in rates if rates[p] == rate]) for rate in dict.fromkeys(rates.values())]
    return [{"params": parameters, "lr": rate, "base_lr": rate} for rate, parameters in groups]
