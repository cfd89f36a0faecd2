"""The kinds of trial that train no language model: small computations whose true answer is known."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt

from trainables.frozen import Identified, NonNegative
from trainables.layer_configs import (
    LmsPlifConfig,
    MixtureConfig,
    MocConfig,
    MonotoneNnConfig,
    MosPlifConfig,
    OutputLayerConfig,
)


class ExperimentConfig(Identified):
    """A trial in one piece: it writes no checkpoint, and one that was killed starts anew."""

    schema_version: Literal[1] = 1
    kind: str

    @property
    def family(self) -> str:
        """What trials of about the same cost have in common."""
        return self.kind

    @property
    def parameters(self) -> int:
        """How many numbers are fitted."""
        return 0

    @property
    @abstractmethod
    def operations(self) -> float:
        """About how many floating-point operations the trial takes."""

    @property
    @abstractmethod
    def memory_bytes(self) -> float:
        """About how much memory its arrays take."""


class DirichletConfig(ExperimentConfig):
    """Fit N categorical targets drawn from Dir(alpha) over M outcomes (Ganea et al. 2019, the talk's synthetic
    experiment): each context has a vector of its own in R^d, and the outcomes' vectors are shared."""

    kind: Literal["dirichlet"] = "dirichlet"
    targets: PositiveInt = 1_000
    """N."""
    outcomes: PositiveInt = 1_000
    """M."""
    alpha: PositiveFloat
    width: PositiveInt
    """d."""
    output_layer: OutputLayerConfig

    @property
    def family(self) -> str:
        """The output layer: each takes its own time for a pass over the targets."""
        return f"{self.kind} {self.output_layer.name}"

    @property
    def parameters(self) -> int:
        """Vectors of contexts and outcomes, and what the output layer owns."""
        layer, d = self.output_layer, self.width
        own = self.outcomes
        if isinstance(layer, LmsPlifConfig | MosPlifConfig):
            own += layer.knots
        if isinstance(layer, MonotoneNnConfig):
            own += 3 * layer.units
        if isinstance(layer, MixtureConfig):
            own += layer.mixtures * (d + d * (d + 1))
        return (self.targets + self.outcomes) * d + own

    @property
    def operations(self) -> float:
        """Of so many passes forward and backward as a fit takes."""
        experts = self.output_layer.mixtures if _mixes_probabilities(self.output_layer) else 1  # type: ignore[union-attr]
        return 1_000.0 * self.targets * self.outcomes * experts * (6.0 * self.width + 100.0)

    @property
    def memory_bytes(self) -> float:
        """A few matrices of targets by outcomes."""
        return 4.0 * 30 * self.targets * self.outcomes


def _mixes_probabilities(layer: OutputLayerConfig) -> bool:
    return isinstance(layer, MixtureConfig) and not isinstance(layer, MocConfig)


class PressNoiseConfig(ExperimentConfig):
    """Ranks of one log-P matrix of known rank, n x n, with Gaussian noise on it, and of what SVD round trips make of
    it (AAAI 2021, SM Algorithms 1 and 2)."""

    kind: Literal["press_noise"] = "press_noise"
    size: Annotated[int, Field(ge=20)] = 10_000
    """n: contexts (rows) and words (columns)."""
    rank: Annotated[int, Field(ge=3, le=20)] = 10
    """Of the matrix without noise: d + 2 of a softmax layer of width d."""
    noise_variance: NonNegative = 0.0
    """c: of each entry of the noise. Its standard deviation is the root of c."""
    round_trips: NonNegativeInt = 0
    """So many times: decompose, keep as many directions as the Press rank counts, multiply, decompose again."""
    precision: Literal["float32", "float64"] = "float64"
    """Of the matrix, of its decompositions and of the eps in the Press tolerance."""

    @property
    def operations(self) -> float:
        """A decomposition without its directions takes about 8/3 n^3, with them 22 n^3, much of it bound by memory."""
        return 2.0 * (8.0 / 3.0 + 22.0 * self.round_trips) * self.size**3

    @property
    def memory_bytes(self) -> float:
        """The matrix, its noise and what LAPACK works on; a round trip has two sides of directions besides."""
        return 8.0 * (6.0 if self.round_trips else 3.0) * self.size**2


class WordPairsConfig(ExperimentConfig):
    """Count the pairs of the 13 word-similarity benchmarks that a corpus' vocabulary lacks (AAAI 2021, SM Table 13)."""

    kind: Literal["word_pairs"] = "word_pairs"
    text: Literal["ptb", "wikitext-2"]
    """The corpus. Its files, and the benchmarks', must have the published SHA-256, so that its name says all of it."""

    @property
    def operations(self) -> float:
        """Reading a few megabytes."""
        return 1e10

    @property
    def memory_bytes(self) -> float:
        """The text and its words."""
        return 3e8
