"""PyTorch's SGD, Adam and AdamW without their `torch.compile` wrappers.

At its first step, PyTorch's optimizer imports the compiler (SymPy and 800 modules): 2 s per worker
process. The updates are PyTorch's own, bit by bit.
"""

from __future__ import annotations

import inspect
from typing import TypeVar

import torch
from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from trainables.config import TrainingConfig, TransformerTrainingConfig
from trainables.language_model import LanguageModel
from trainables.output_layers import Pointwise

Kind = TypeVar("Kind", bound=Optimizer)


def _without_compiler(kind: type[Kind]) -> type[Kind]:
    methods = {
        "add_param_group": inspect.unwrap(Optimizer.add_param_group),
        "zero_grad": inspect.unwrap(Optimizer.zero_grad),
        "step": torch.no_grad()(inspect.unwrap(kind.step)),
    }
    return type(f"Eager{kind.__name__}", (kind,), methods)


EagerSGD = _without_compiler(SGD)
EagerAdam = _without_compiler(Adam)
EagerAdamW = _without_compiler(AdamW)


def optimizer_of(
    model: LanguageModel, training: TrainingConfig | TransformerTrainingConfig
) -> Optimizer:
    """Return the optimizer of a model, with the rate before any schedule as each group's `base_lr`.

    Functions of the logits may have their own rate.
    """
    function_rates: dict[nn.Parameter, float | None] = {}
    for function in (module for module in model.modules() if isinstance(module, Pointwise)):
        for parameter in function.parameters():
            # A function may contain another, which comes later: the outer rate applies to both.
            if function_rates.get(parameter) is None:
                function_rates[parameter] = function.learning_rate
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():
        rate, decay = function_rates.get(parameter), training.weight_decay
        if isinstance(training, TransformerTrainingConfig):
            is_bias = "bias" in name.rpartition(".")[2]
            if parameter.dim() < 2 or is_bias or parameter in function_rates:
                decay = 0.0
        key = (training.learning_rate if rate is None else rate, decay)
        groups.setdefault(key, []).append(parameter)
    group_options = [
        {"params": parameters, "lr": rate, "base_lr": rate, "weight_decay": decay}
        for (rate, decay), parameters in groups.items()
    ]
    if isinstance(training, TransformerTrainingConfig):
        return EagerAdamW(group_options, betas=(training.beta1, training.beta2), fused=True)
    if training.optimizer == "adam":
        # Fused: one kernel per parameter instead of a dozen.
        return EagerAdam(group_options, fused=True)
    return EagerSGD(group_options)
