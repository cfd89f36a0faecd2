"""How well a small network with one hidden layer of the given kind learns an invented function."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainables.config import LAYER_TASK, LayerTaskConfig
from trainables.draws import stream
from trainables.experiments.layer_jacobian import make_layer
from trainables.experiments.task_functions import BATCHES, WEIGHTS, Examples, Task, make_task
from trainables.measurements import Measured
from trainables.runtime import Runtime
from trainables.training import DivergedError


@dataclass(frozen=True, kw_only=True)
class _Fit:
    learning_rate: float
    train_error: float
    valid_error: float
    test_error: float
    fitted_parameters: int


def measure(config: LayerTaskConfig, runtime: Runtime) -> dict[str, Measured]:
    """Train once at each learning rate, from the same weights on the same batches; the one with the lowest validation
    error counts.

    Errors are mean squared errors in percent of the variance of the targets of the same sample: 0 is the function
    itself, 100 is no better than its mean. Raises DivergedError where no learning rate leads to finite errors.
    """
    task = make_task(config)
    fits = [_fit(config, rate, task, runtime.device) for rate in config.learning_rates]
    finite = [fit for fit in fits if all(map(math.isfinite, (fit.train_error, fit.valid_error, fit.test_error)))]
    if not finite:
        raise DivergedError(f"the errors are not finite at any of the learning rates {config.learning_rates}")
    best = min(finite, key=lambda fit: fit.valid_error)
    return {
        LAYER_TASK: Measured(
            metrics={
                "test_error_percent": 100 * best.test_error,
                "validation_error_percent": 100 * best.valid_error,
                "train_error_percent": 100 * best.train_error,
                "chosen_learning_rate": best.learning_rate,
                "parameters": best.fitted_parameters,
            }
        )
    }


def make_network(config: LayerTaskConfig, generator: torch.Generator) -> nn.Sequential:
    """Hidden layer and linear output, both Glorot-uniform; the output's biases start at 0."""
    hidden = make_layer(config.layer, config.input_width, config.width, gate_bias=True)
    hidden.initialise(generator)
    output = nn.Linear(config.width, config.outputs)
    nn.init.xavier_uniform_(output.weight, generator=generator)
    nn.init.zeros_(output.bias)
    return nn.Sequential(hidden, output)


def _fit(config: LayerTaskConfig, rate: float, task: Task, device: str) -> _Fit:
    """Adam (Kingma and Ba 2015), its learning rate falling linearly to 0."""
    # Weights and batches have streams of their own, so that a layer's size does not change the batches.
    weights, batches = stream(config.seed, WEIGHTS), stream(config.seed, BATCHES)
    network = make_network(config, weights).to(device)
    train, valid, test = (_to(examples, device) for examples in (task.train, task.valid, task.test))
    optimizer = torch.optim.Adam(network.parameters(), lr=rate)
    decay = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / config.steps)
    for _ in range(config.steps):
        chosen_N = torch.randint(config.train_examples, (config.batch,), generator=batches).to(device)
        loss = nn.functional.mse_loss(network(train.inputs_NI[chosen_N]), train.targets_NO[chosen_N])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        decay.step()
    return _Fit(
        learning_rate=rate,
        train_error=_error(network, train),
        valid_error=_error(network, valid),
        test_error=_error(network, test),
        fitted_parameters=sum(parameter.numel() for parameter in network.parameters()),
    )


def _to(examples: Examples, device: str) -> Examples:
    return Examples(inputs_NI=examples.inputs_NI.to(device), targets_NO=examples.targets_NO.to(device))


@torch.no_grad()
def _error(network: nn.Module, examples: Examples) -> float:
    """Mean squared error over the variance of the targets, each output alike."""
    targets_NO: Tensor = examples.targets_NO
    error_O = (network(examples.inputs_NI) - targets_NO).square().mean(dim=0)
    return float((error_O / targets_NO.var(dim=0, unbiased=False)).mean())
