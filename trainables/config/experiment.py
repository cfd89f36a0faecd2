"""Trials that train no language model: small computations whose true answer is known."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, field_validator

from trainables.config.built_in_corpora import MARKOV_TOKENS, MARKOV_TYPES, markov_rank
from trainables.config.frozen import Identified, NonNegative
from trainables.config.language_model import CorpusConfig, EvaluationConfig


class ExperimentConfig(Identified):
    """A trial in one piece: it writes no checkpoint, and one that was killed starts anew."""

    schema_version: Literal[1, 2] = 1
    """A kind's own."""
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
    def operations(self) -> float:
        """About how many floating-point operations the trial takes: so many read a few megabytes of
        text."""
        return 1e10

    @property
    def memory_bytes(self) -> float:
        """About how much memory its arrays take: so much a text and its words."""
        return 3e8


class PressNoiseConfig(ExperimentConfig):
    """Ranks of a made log-P matrix, n x n, cut to its strongest directions: with Gaussian noise, or
    after SVD round trips (AAAI 2021, SM Algorithms 1 and 2)."""

    schema_version: Literal[2] = 2
    kind: Literal["press_noise"] = "press_noise"
    size: Annotated[int, Field(ge=20)] = 10_000
    """n: contexts (rows) and words (columns)."""
    rank: Annotated[int, Field(ge=3, le=18)] = 10
    """Singular values that the cut keeps, divided by the largest; the matrix has 18."""
    noise_variance: NonNegative = 0.0
    """c: each entry of the noise has variance c / n^2."""
    round_trips: NonNegativeInt = 0
    """How many times the matrix is decomposed and multiplied back. Nothing is cut on the way."""
    precision: Literal["float32", "float64"] = "float64"
    """Of the matrix, of its round trips and of the eps in the Press tolerance."""

    @property
    def operations(self) -> float:
        """By the time on one core: 18 n^3 for a full decomposition and its product, 4 n^3 for
        noise."""
        return (18.0 * (self.round_trips + 1) if self.round_trips else 4.0) * self.size**3

    @property
    def memory_bytes(self) -> float:
        """The matrix, its noise and the Gram matrix; for a round trip two matrices, both sides of
        directions and what LAPACK works on."""
        return 8.0 * (9.5 if self.round_trips else 3.3) * self.size**2


class TrueRankConfig(ExperimentConfig):
    """Measure the true log-P matrix of a generated language as the matrices of models trained on it
    are measured: one row after each test token."""

    kind: Literal["true_rank"] = "true_rank"
    corpus: CorpusConfig
    variant: Literal["float64", "float32", "noise"]
    """float64: the exact matrix, which float64 holds without rounding. float32: every value rounded
    to float32. noise: every value times 1 + eps g, eps of float32 and g standard normal, drawn anew
    for each place of the matrix."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Which rows, and which test tokens are predicted: as those of a language model."""

    @field_validator("corpus")
    @classmethod
    def _whole_language(cls, corpus: CorpusConfig) -> CorpusConfig:
        if markov_rank(corpus.name) is None:
            raise ValueError(
                f"the true log P is known of generated languages of a rank only, and "
                f"{corpus.name!r} is none"
            )
        if corpus.vocabulary_limit is not None:
            raise ValueError(
                "the true log P is known for the whole vocabulary only; leave vocabulary_limit "
                f"None, not {corpus.vocabulary_limit}"
            )
        return corpus

    @property
    def operations(self) -> float:
        """Of the reduction to a triangle, and of its singular values."""
        rows = self.evaluation.test_tokens or MARKOV_TOKENS["test"]
        rows = min(rows, self.evaluation.rank_contexts or rows)
        return 2.0 * rows * MARKOV_TYPES**2 + 4.0 * MARKOV_TYPES**3

    @property
    def memory_bytes(self) -> float:
        """The language in three matrices and as lists, the triangle, and a block of rows in its two
        precisions."""
        return 8.0 * 8 * MARKOV_TYPES**2 + 3 * 2**26


class WordPairsConfig(ExperimentConfig):
    """Count the pairs of the 13 word-similarity benchmarks that a corpus' vocabulary lacks (AAAI
    2021, SM Table 13)."""

    kind: Literal["word_pairs"] = "word_pairs"
    text: Literal["ptb", "wikitext-2"]
    """The corpus. Its files, and the benchmarks', must have the published SHA-256, so that its name
    says all of it."""
