"""Fitting known distributions (Ganea et al. 2019, the talk's synthetic experiment): what an output layer can express.

N targets from Dir(alpha) over V outcomes; each has a context vector of its own, and all share the outcomes' vectors, so
that nothing but the output layer and the width keeps the model from its targets.

Shapes: N targets (contexts), D width, V outcomes.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trainables.config import DirichletConfig
from trainables.experiments.dirichlet_targets import Targets, draw_targets
from trainables.experiments.minimise import Fitted, minimise
from trainables.experiments.soft_cross_entropy import soft_cross_entropy
from trainables.measurements import Measured
from trainables.output_layers import START, LayerShape, OutputLayer, PiecewiseLinear, build_output_layer
from trainables.runtime import Runtime

PRECISION = torch.float32
"""Of the fit. Targets, floor and what is reported are computed in float64."""


@dataclass(frozen=True, kw_only=True)
class Model:
    """Everything that is fitted."""

    contexts_ND: nn.Parameter
    outcomes_VD: nn.Parameter
    layer: OutputLayer

    def parameters(self) -> list[nn.Parameter]:
        """Vectors of contexts and outcomes, and what the layer owns."""
        return [self.contexts_ND, self.outcomes_VD, *self.layer.parameters()]

    def loss(self, targets_NV: Tensor) -> Tensor:
        """Mean cross-entropy of the targets in nats."""
        return soft_cross_entropy(self.layer, self.contexts_ND, self.outcomes_VD, targets_NV)

    @torch.no_grad()
    def log_probabilities(self) -> Tensor:
        """log P, N x V, in float64."""
        layer = self.layer.double()
        return layer.log_probabilities(self.contexts_ND.double(), self.outcomes_VD.double())


def measure(config: DirichletConfig, runtime: Runtime) -> dict[str, Measured]:
    """Fit the targets of the config's seed; the gap to the floor, and how many modes are right.

    Raises DivergedError where the loss leaves the finite numbers.
    """
    targets = draw_targets(alpha=config.alpha, targets=config.targets, outcomes=config.outcomes, seed=config.seed)
    model = draw_model(config, dtype=PRECISION, device=runtime.device)
    fitted = fit(model, targets, config)
    return {
        "dirichlet@1": Measured(
            metrics={
                **compare(model, targets),
                "iterations": fitted.iterations,
                "passes": fitted.passes,
                "met_rule": int(fitted.met_rule),
            }
        )
    }


def draw_model(config: DirichletConfig, *, dtype: torch.dtype, device: str = "cpu") -> Model:
    """The model before its fit: normal vectors whose products have variance 1; the layer as it is initialised.

    A learned piecewise linear function starts as the identity: from its usual random slopes the same model is only
    harder to fit.
    """
    shape = LayerShape(vocabulary_size=config.outcomes, embedding_width=config.width, context_width=config.width)
    generator = torch.Generator().manual_seed(config.seed)
    layer = build_output_layer(config.output_layer, shape)
    layer.initialise(generator)
    function = getattr(layer, "function", None)
    if isinstance(function, PiecewiseLinear) and function.weight_K.requires_grad:
        nn.init.constant_(function.weight_K, START)
    contexts_ND, outcomes_VD = (
        nn.Parameter((torch.randn(rows, config.width, generator=generator) * config.width**-0.25).to(device, dtype))
        for rows in (config.targets, config.outcomes)
    )
    return Model(contexts_ND=contexts_ND, outcomes_VD=outcomes_VD, layer=layer.to(device, dtype))


def fit(model: Model, targets: Targets, config: DirichletConfig) -> Fitted:
    """Fit the model in place."""
    targets_NV = torch.from_numpy(targets.p_NV).to(model.contexts_ND)
    return minimise(model.parameters(), lambda: model.loss(targets_NV), floor=targets.mean_entropy, config=config.fit)


def compare(model: Model, targets: Targets) -> dict[str, float]:
    """Mean KL divergence of the model from its targets in nats, the floor below it, and the modes that are right."""
    log_p_NV = model.log_probabilities().cpu().numpy()
    divergence_N = (targets.p_NV * (targets.log_p_NV - log_p_NV)).sum(axis=1)
    return {
        "excess_cross_entropy": float(divergence_N.mean()),
        "target_entropy": targets.mean_entropy,
        "modes_matched": 100.0 * float((log_p_NV.argmax(axis=1) == targets.modes).mean()),
    }
