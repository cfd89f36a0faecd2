"""The kinds of trial that train no language model: small computations whose true answer is known."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Literal

from pydantic import AfterValidator, PositiveFloat, PositiveInt

from trainables.built_in_corpora import MARKOV_TOKENS, MARKOV_TYPES, markov_rank
from trainables.config import CorpusConfig, EvaluationConfig
from trainables.errors import UserError
from trainables.frozen import Identified
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


def _whole_language(corpus: CorpusConfig) -> CorpusConfig:
    try:
        rank = markov_rank(corpus.name)
    except UserError as error:
        raise ValueError(str(error)) from error
    if rank is None:
        raise ValueError(f"the true log P is known of generated languages only, and {corpus.name!r} is none")
    if corpus.vocabulary_limit is not None:
        raise ValueError(
            f"the true log P is known for the whole vocabulary only; leave vocabulary_limit None, not "
            f"{corpus.vocabulary_limit}"
        )
    return corpus


class TrueRankConfig(ExperimentConfig):
    """Measure the true log-P matrix of a generated language as the matrices of models trained on it are measured: one
    row after each test token."""

    kind: Literal["true_rank"] = "true_rank"
    corpus: Annotated[CorpusConfig, AfterValidator(_whole_language)]
    variant: Literal["float64", "float32", "noise"]
    """float64: the exact matrix, which float64 holds without rounding. float32: every value rounded to float32. noise:
    every value times 1 + eps g, eps of float32 and g standard normal, drawn anew for each place of the matrix."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Which rows, and which test tokens are predicted: as those of a language model."""

    @property
    def operations(self) -> float:
        """Of the reduction to a triangle, and of its singular values."""
        rows = self.evaluation.test_tokens or MARKOV_TOKENS["test"]
        rows = min(rows, self.evaluation.rank_contexts or rows)
        return 2.0 * rows * MARKOV_TYPES**2 + 4.0 * MARKOV_TYPES**3

    @property
    def memory_bytes(self) -> float:
        """The language in three matrices and as lists, the triangle, and a block of rows in its two precisions."""
        return 8.0 * 8 * MARKOV_TYPES**2 + 3 * 2**26
