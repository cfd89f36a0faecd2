"""Fits to known distributions."""

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
"""About how often a fit to known distributions goes through them."""


class FitConfig(Frozen):
    """Adam, whose step falls to zero by half a cosine, then L-BFGS in rounds until a round brings
    next to nothing.

    Adam leaves the bad optima in which L-BFGS ends from a random start, above all with a piecewise
    function; L-BFGS goes on while that brings something. A fit that meets the rule may still lie
    above what more steps would reach."""

    adam_steps: Annotated[int, Field(ge=0)] = 700
    step_size: PositiveFloat = 0.05
    """Of Adam's first step."""
    round_iterations: PositiveInt = 20
    """Iterations of L-BFGS from one look at the rule to the next, at most: its line search may find
    nothing before."""
    tolerance: NonNegative = 0.02
    """The rule is met: a round lowered the gap to the floor by less than this share of it."""
    gap_nats: NonNegative = 1e-4
    """And where the gap is below this."""
    most_rounds: PositiveInt = 50
    """A fit that ends here has not met the rule, and says so."""


class DirichletConfig(ExperimentConfig):
    """Fit N categorical targets drawn from Dir(alpha) over M outcomes (Ganea et al. 2019, the
    talk's synthetic experiment): each context has a vector of its own in R^d, and the outcomes'
    vectors are shared."""

    kind: Literal["dirichlet"] = "dirichlet"
    targets: Annotated[int, Field(ge=2)] = 1_000
    """N."""
    outcomes: Annotated[int, Field(ge=2)] = 1_000
    """M."""
    alpha: Annotated[float, Field(ge=1e-3, le=1e3)]
    width: PositiveInt
    """d."""
    output_layer: OutputLayerConfig
    fit: FitConfig = FitConfig()

    @property
    def family(self) -> str:
        """The output layer: each takes its own time for a pass over the targets."""
        return f"{self.kind} {self.output_layer.name}"

    @property
    def parameters(self) -> int:
        """Vectors of contexts and outcomes, and what the output layer owns."""
        d = self.width
        return (self.targets + self.outcomes) * d + layer_parameters(
            self.output_layer, vocabulary=self.outcomes, embedding_width=d, context_width=d
        )

    @property
    def operations(self) -> float:
        """Of so many passes forward and backward as a fit takes, in operations of a language
        model's training: the matrix products here are larger and faster."""
        layer = self.output_layer
        experts = layer.mixtures if isinstance(layer, MosConfig | MosPlifConfig) else 1
        per_logit = 64.0 * layer.units if isinstance(layer, MonotoneNnConfig) else 130.0
        return PASSES * self.targets * self.outcomes * experts * (1.5 * self.width + per_logit)

    @property
    def memory_bytes(self) -> float:
        """A few matrices of targets by outcomes."""
        return 4.0 * 30 * self.targets * self.outcomes
