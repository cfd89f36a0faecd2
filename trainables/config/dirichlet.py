"""Config of trials that fit random distributions drawn from a Dirichlet distribution."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, PositiveFloat, PositiveInt

from trainables.config.experiment import ExperimentConfig
from trainables.config.frozen import Frozen, TwoOrMore
from trainables.config.output_layer import (
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    layer_parameters,
)

PASSES = 900.0  # loss computations of a typical fit


class FitConfig(Frozen):
    """Settings of a fit: Adam with a cosine decay to zero, then rounds of L-BFGS.

    L-BFGS alone ends in bad optima, especially with a piecewise linear function. The fit ends after
    a round that reduces the gap between loss and entropy by less than the share `tolerance`, or
    once the gap is below `gap_nats`.
    """

    adam_steps: NonNegativeInt = 700
    step_size: PositiveFloat = 0.05
    round_iterations: PositiveInt = 20
    tolerance: NonNegativeFloat = 0.02
    gap_nats: NonNegativeFloat = 1e-4
    most_rounds: PositiveInt = 50
    """A fit that needs more rounds is reported as not converged."""


class DirichletConfig(ExperimentConfig):
    """Fit `targets` random distributions over `outcomes` outcomes (Ganea et al. 2019, the talk).

    Each distribution is drawn from Dir(`alpha`) and has a trained context vector. They share
    trained output weights.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    targets: TwoOrMore = 1_000
    outcomes: TwoOrMore = 1_000
    alpha: Annotated[float, Field(ge=1e-3, le=1e3)]
    width: PositiveInt
    output_layer: OutputLayerConfig
    fit: FitConfig = FitConfig()

    @property
    def family(self) -> str:
        """Return the kind and the output layer, which determine the time of one step."""
        return f"{self.kind} {self.output_layer.name}"

    @property
    def parameters(self) -> int:
        """Return the number of fitted parameters."""
        d = self.width
        return (self.targets + self.outcomes) * d + layer_parameters(
            self.output_layer, vocabulary=self.outcomes, embedding_width=d, context_width=d
        )

    @property
    def operations(self) -> float:
        """Return the cost of a typical fit, in operations of language-model training.

        An operation of a fit is slower, because its matrix products are smaller.
        """
        layer = self.output_layer
        experts = layer.mixtures if isinstance(layer, MosConfig | MosPlifConfig) else 1
        per_logit = 64.0 * layer.units if isinstance(layer, MonotoneNnConfig) else 130.0
        return PASSES * self.targets * self.outcomes * experts * (1.5 * self.width + per_logit)

    @property
    def memory_bytes(self) -> float:
        """Return the bytes of 30 float32 matrices, targets x outcomes."""
        return 4.0 * 30 * self.targets * self.outcomes
