"""Minimising a loss whose least value is known, by one rule of convergence for every model."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from trainables.config import FitConfig
from trainables.training import DivergedError


def minimise(
    parameters: Sequence[nn.Parameter], loss: Callable[[], Tensor], *, floor: float, config: FitConfig
) -> dict[str, int]:
    """Fit the parameters in place, as `FitConfig` says; `floor` is a lower bound of the loss.

    Returns `iterations` (of Adam and of L-BFGS), `passes` (how often loss and gradients were computed: the line search
    takes some more than one an iteration) and `met_rule` (1 where the rule was met before the limit, else 0). Raises
    DivergedError where the loss leaves the finite numbers.
    """
    trained = [parameter for parameter in parameters if parameter.requires_grad]
    passes = 0

    def loss_with_gradients() -> float:
        nonlocal passes
        for parameter in trained:
            parameter.grad = None
        result = loss()
        value = float(result.detach())
        passes += 1
        if not math.isfinite(value):
            raise DivergedError(f"the loss became {value:.3g} nats in pass {passes} over the targets")
        result.backward()
        return value

    adam = torch.optim.Adam(trained, lr=config.step_size)
    for step in range(config.adam_steps):
        adam.param_groups[0]["lr"] = config.step_size * (1 + math.cos(math.pi * step / config.adam_steps)) / 2
        loss_with_gradients()
        adam.step()
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
        search.step(loss_with_gradients)
        rounds += 1
        earlier_gap, gap = gap, loss_with_gradients() - floor
        met_rule = gap < config.gap_nats or earlier_gap - gap < config.tolerance * earlier_gap
    iterations = config.adam_steps + int(search.state[trained[0]]["n_iter"])
    return {"iterations": iterations, "passes": passes, "met_rule": int(met_rule)}
