"""The optimizer of a training: PyTorch's SGD, Adam or AdamW without what surrounds them for
`torch.compile`.

Every optimizer of PyTorch imports its compiler at the first step, with SymPy and 800 modules: 2 s
of each worker process, and nothing here is compiled. The updates are PyTorch's own, bit by bit."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch.optim import SGD, Adam, AdamW, Optimizer
from typing_extensions import override

from trainables.config import TrainingConfig, TransformerTrainingConfig
from trainables.language_model import LanguageModel
from trainables.output_layers import Pointwise

_add_param_group = inspect.unwrap(Optimizer.add_param_group)
_zero_grad = inspect.unwrap(Optimizer.zero_grad)
_sgd_step = inspect.unwrap(SGD.step)
_adam_step = inspect.unwrap(Adam.step)
_adamw_step = inspect.unwrap(AdamW.step)


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


class EagerAdamW(_WithoutCompiler, AdamW):
    """`torch.optim.AdamW`."""

    @override
    @torch.no_grad()
    def step(self, closure: None = None) -> None:  # type: ignore[override]
        """As Adam, with weight decay apart from the gradient and its moments."""
        _adamw_step(self)


def adam_or_sgd(model: LanguageModel, training: TrainingConfig) -> EagerSGD | EagerAdam:
    """The optimizer of this training; functions may have a learning rate of their own."""
    rates = _function_rates(model)
    groups = [
        (
            training.learning_rate,
            [parameter for parameter in model.parameters() if parameter not in rates],
        )
    ]
    groups += [
        (rate, [p for p in rates if rates[p] == rate]) for rate in dict.fromkeys(rates.values())
    ]
    described = [{"params": parameters, "lr": rate, "base_lr": rate} for rate, parameters in groups]
    if training.optimizer == "adam":
        # Fused: one kernel a parameter in place of a dozen.
        return EagerAdam(described, weight_decay=training.weight_decay, fused=True)
    return EagerSGD(described, weight_decay=training.weight_decay)


def adamw(model: LanguageModel, training: TransformerTrainingConfig) -> EagerAdamW:
    """AdamW, whose decay is of matrices alone: not of gains, of biases, nor of what functions of
    the logits learn."""
    rates = _function_rates(model)
    of_functions = {
        p
        for module in model.modules()
        if isinstance(module, Pointwise)
        for p in module.parameters()
    }
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        is_matrix = (
            parameter.dim() > 1
            and "bias" not in name.rpartition(".")[2]
            and parameter not in of_functions
        )
        key = (
            rates.get(parameter, training.learning_rate),
            training.weight_decay if is_matrix else 0.0,
        )
        groups.setdefault(key, []).append(parameter)
    described = [
        {"params": parameters, "lr": rate, "base_lr": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    return EagerAdamW(described, betas=(training.beta1, training.beta2), fused=True)


def _function_rates(model: LanguageModel) -> dict[torch.nn.Parameter, float]:
    """The parameters of functions that have a learning rate of their own."""
    rates: dict[torch.nn.Parameter, float] = {}
    for module in model.modules():
        if isinstance(module, Pointwise) and (rate := module.own_learning_rate()) is not None:
            for parameter in module.parameters():
                # A function may hold another one, which comes later: the outer one's rate is for
                # both.
                rates.setdefault(parameter, rate)
    return rates
