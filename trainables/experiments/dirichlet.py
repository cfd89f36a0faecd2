"""Fits of output layers to known distributions (Ganea et al. 2019, experiment of the talk).

Each of N targets, drawn from Dir(alpha) over V outcomes, has its own context vector. All targets
share the outcomes' vectors, so only output layer and width limit the fit.

Shapes: N targets (contexts), D width, V outcomes.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trainables.config import DirichletConfig, FitConfig
from trainables.output_layers import (
    START,
    LayerShape,
    MixtureOfSoftmaxes,
    PiecewiseLinear,
    PointwiseSoftmax,
    build_output_layer,
)
from trainables.pulse import PULSE
from trainables.runtime import Runtime
from trainables.training import DivergedError
from trainables.trial_folder import Measured


def measure(config: DirichletConfig, runtime: Runtime) -> dict[str, Measured]:
    """Fit targets drawn from the seed in float32, and measure the fit in float64.

    - `excess_cross_entropy`: mean of KL(target || model) in nats.
    - `target_entropy`: lower bound of the cross-entropy in nats.
    - `modes_matched`: percentage of targets whose most likely outcome is also the model's.

    Raises as `fit` does.
    """
    p_NV, log_p_NV = draw_targets(
        alpha=config.alpha, targets=config.targets, outcomes=config.outcomes, seed=config.seed
    )
    entropy = float(-(p_NV * log_p_NV).sum(axis=1).mean())
    model = Model(config).to(runtime.device)
    targets_NV = torch.from_numpy(p_NV).to(model.contexts_ND)
    report = fit(model, targets_NV, floor=entropy, config=config.fit)
    distances = compare(model, p_NV, log_p_NV)
    return {"dirichlet@1": Measured({"target_entropy": entropy, **distances, **report})}


def draw_targets(
    *, alpha: float, targets: int, outcomes: int, seed: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return N distributions from Dir(alpha, .., alpha) and their logs.

    A Dirichlet variate is a vector of Gamma(alpha) variates divided by its sum. At alpha = 0.01,
    the variates underflow. Their logs do not: Gamma(alpha) is Gamma(alpha + 1) U^(1 / alpha) with U
    uniform.
    """
    rng = np.random.default_rng(seed)
    size = (targets, outcomes)
    log_gamma_NV = (
        np.log(rng.standard_gamma(alpha + 1.0, size)) + np.log1p(-rng.random(size)) / alpha
    )
    log_gamma_NV -= log_gamma_NV.max(axis=1, keepdims=True)
    log_p_NV = log_gamma_NV - np.log(np.exp(log_gamma_NV).sum(axis=1, keepdims=True))
    p_NV = np.exp(log_p_NV)
    return p_NV / p_NV.sum(axis=1, keepdims=True), log_p_NV


class Model(nn.Module):
    """Fitted vectors of contexts and outcomes, and the output layer.

    Initial vectors are normal, and their inner products have variance 1. A learned piecewise linear
    function starts as the identity, because random slopes are harder to fit.
    """

    def __init__(self, config: DirichletConfig) -> None:
        super().__init__()
        width, generator = config.width, torch.Generator().manual_seed(config.seed)
        shape = LayerShape(
            vocabulary_size=config.outcomes, embedding_width=width, context_width=width
        )
        self.layer = build_output_layer(config.output_layer, shape)
        self.layer.initialise(generator)
        function = getattr(self.layer, "function", None)
        if isinstance(function, PiecewiseLinear) and function.weight_K.requires_grad:
            nn.init.constant_(function.weight_K, START)
        self.contexts_ND, self.outcomes_VD = (
            nn.Parameter(torch.randn(rows, width, generator=generator) * width**-0.25)
            for rows in (config.targets, config.outcomes)
        )

    def loss(self, targets_NV: Tensor) -> Tensor:
        """Return the model's mean cross-entropy with the N targets in nats, float64."""
        if isinstance(self.layer, PointwiseSoftmax | MixtureOfSoftmaxes):
            return self.layer.loss(self.contexts_ND.unsqueeze(1), self.outcomes_VD, targets_NV)
        log_p_NV = self.layer.log_probabilities(self.contexts_ND, self.outcomes_VD)
        return -(targets_NV * log_p_NV).sum(dtype=torch.float64) / len(targets_NV)


@torch.no_grad()
def compare(
    model: Model, p_NV: NDArray[np.float64], log_p_NV: NDArray[np.float64]
) -> dict[str, float]:
    """Return `excess_cross_entropy` and `modes_matched`. Converts the model to float64."""
    model.double()
    log_q_NV = model.layer.log_probabilities(model.contexts_ND, model.outcomes_VD).cpu().numpy()
    return {
        "excess_cross_entropy": float((p_NV * (log_p_NV - log_q_NV)).sum(axis=1).mean()),
        "modes_matched": 100.0 * float((log_q_NV.argmax(axis=1) == log_p_NV.argmax(axis=1)).mean()),
    }


def fit(model: Model, targets_NV: Tensor, *, floor: float, config: FitConfig) -> dict[str, int]:
    """Minimise the model's loss in place, as `config` sets; `floor` is a lower bound of the loss.

    Returns `iterations` (of Adam and L-BFGS), `passes` (evaluations of loss and gradients) and
    `met_rule` (1 if the stopping rule was met, else 0). Raises DivergedError if the loss is not
    finite.
    """
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    passes = 0

    def loss_with_gradients() -> float:
        nonlocal passes
        PULSE.touch()
        for parameter in parameters:
            parameter.grad = None
        loss = model.loss(targets_NV)
        value = float(loss.detach())
        passes += 1
        if not math.isfinite(value):
            raise DivergedError(
                f"the loss became {value:.3g} nats in pass {passes} over the targets"
            )
        loss.backward()
        return value

    adam = torch.optim.Adam(parameters, lr=config.step_size)
    for step in range(config.adam_steps):
        adam.param_groups[0]["lr"] = (
            config.step_size * (1 + math.cos(math.pi * step / config.adam_steps)) / 2
        )
        loss_with_gradients()
        adam.step()
    search = torch.optim.LBFGS(
        parameters,
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
    iterations = config.adam_steps + int(search.state[parameters[0]]["n_iter"])
    return {"iterations": iterations, "passes": passes, "met_rule": int(met_rule)}
