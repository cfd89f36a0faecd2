"""Config of fits to known distributions."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, PositiveFloat, PositiveInt

from trainables.config.experiment import ExperimentConfig
from trainables.config.frozen import Frozen, NonNegative
from trainables.config.output_layer import (
    MonotoneNnConfig,
    MosConfig,
    MosPlifConfig,
    OutputLayerConfig,
    layer_parameters,
)

PASSES = 900.0
"""Typical number of passes over the targets in a fit."""


class FitConfig(Frozen):
    """Adam with half a cosine decay to zero, then rounds of L-BFGS.

    Adam avoids L-BFGS's bad optima, especially with a piecewise function. The fit ends after a
    round with little improvement, and may still be above its optimum.
    """

    adam_steps: Annotated[int, Field(ge=0)] = 700
    step_size: PositiveFloat = 0.05
    round_iterations: PositiveInt = 20
    """Maximum L-BFGS iterations per round; the line search may fail earlier."""
    tolerance: NonNegative = 0.02
    """The fit ends if a round closes less than this share of the gap between loss and entropy."""
    gap_nats: NonNegative = 1e-4
    """The fit also ends if the gap is below this."""
    most_rounds: PositiveInt = 50
    """A fit that needs more rounds is reported as not converged."""


class DirichletConfig(ExperimentConfig):
    """Fit N distributions over M outcomes, drawn from Dir(alpha) (Ganea et al. 2019, the talk).

    Each target has its own context vector in R^d. All share the outcomes' vectors.
    """

    kind: Literal["dirichlet"] = "dirichlet"
    targets: Annotated[int, Field(ge=2)] = 1_000
    outcomes: Annotated[int, Field(ge=2)] = 1_000
    alpha: Annotated[float, Field(ge=1e-3, le=1e3)]
    width: PositiveInt
    output_layer: OutputLayerConfig
    fit: FitConfig = FitConfig()

    @property
    def family(self) -> str:
        """Return kind and output layer, which determine the time of a pass."""
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
        """Return how many operations of language-model training take as long as a typical fit.

        Matrix products of language models are larger and faster than those of a fit.
        """
        layer = self.output_layer
        experts = layer.mixtures if isinstance(layer, MosConfig | MosPlifConfig) else 1
        per_logit = 64.0 * layer.units if isinstance(layer, MonotoneNnConfig) else 130.0
        return PASSES * self.targets * self.outcomes * experts * (1.5 * self.width + per_logit)

    @property
    def memory_bytes(self) -> float:
        """Return the bytes of 30 float32 matrices, N x M."""
        return 4.0 * 30 * self.targets * self.outcomes
