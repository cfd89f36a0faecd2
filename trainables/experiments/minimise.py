"""Minimising a loss whose least value is known, by one rule of convergence for every model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainables.config import FitConfig
from trainables.training import DivergedError


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """How a fit ended."""

    iterations: int
    """Of Adam and of L-BFGS."""
    passes: int
    """How often loss and gradients were computed: the line search takes some more than one an iteration."""
    met_rule: bool
    """Whether the rule was met before the limit."""


class _Loss:
    """Loss and gradients, counted and watched."""

    def __init__(self, parameters: Sequence[nn.Parameter], loss: Callable[[], Tensor]) -> None:
        self.parameters = parameters
        self.passes = 0
        self._loss = loss

    def __call__(self) -> float:
        for parameter in self.parameters:
            parameter.grad = None
        loss = self._loss()
        value = float(loss.detach())
        self.passes += 1
        if not math.isfinite(value):
            raise DivergedError(f"the loss became {value:.3g} nats in pass {self.passes} over the targets")
        loss.backward()
        return value


def minimise(
    parameters: Sequence[nn.Parameter], loss: Callable[[], Tensor], *, floor: float, config: FitConfig
) -> Fitted:
    """Fit the parameters in place, as `FitConfig` says; `floor` is a lower bound of the loss.

    Raises DivergedError where the loss leaves the finite numbers.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    watched = _Loss(trained, loss)
    _adam(watched, config)
    search = torch.optim.LBFGS(
        trained,
        max_iter=config.round_iterations,
        max_eval=4 * config.round_iterations,
        history_size=10,
        tolerance_grad=0.0,
        tolerance_change=0.0,
        line_search_fn="strong_wolfe",
    )
    gap, rounds, met_rule = math.inf, 0, False
    while rounds < config.most_rounds and not met_rule:
        search.step(watched)
        rounds += 1
        earlier_gap, gap = gap, watched() - floor
        met_rule = gap < config.gap_nats or earlier_gap - gap < config.tolerance * earlier_gap
    iterations = config.adam_steps + int(search.state[trained[0]]["n_iter"])
    return Fitted(iterations=iterations, passes=watched.passes, met_rule=met_rule)


def _adam(watched: _Loss, config: FitConfig) -> None:
    optimiser = torch.optim.Adam(watched.parameters, lr=config.step_size)
    for step in range(config.adam_steps):
        optimiser.param_groups[0]["lr"] = config.step_size * (1 + math.cos(math.pi * step / config.adam_steps)) / 2
        watched()
        optimiser.step()
