"""Trials that train no language model: small computations whose true answer is known."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, field_validator, model_validator

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
        """About how many floating-point operations the trial takes: so many read a few megabytes of text."""
        return 1e10

    @property
    def memory_bytes(self) -> float:
        """About how much memory its arrays take: so much a text and its words."""
        return 3e8


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
    """So many times: decompose, multiply the directions that are kept, decompose again."""
    kept: Literal["press_rank", "all"] = "press_rank"
    """The directions that a round trip keeps: as many as the Press rank counts, or all of them."""
    precision: Literal["float32", "float64"] = "float64"
    """Of the matrix, of its decompositions and of the eps in the Press tolerance."""

    @model_validator(mode="after")
    def _fewer_directions_than_rows(self) -> Self:
        if self.rank >= self.size:
            raise ValueError(f"rank must be less than size, as noise needs room; got {self.rank} and {self.size}")
        return self

    @property
    def operations(self) -> float:
        """A decomposition without its directions takes about 8/3 n^3, with them 22 n^3, much of it bound by memory."""
        return 2.0 * (8.0 / 3.0 + 22.0 * self.round_trips) * self.size**3

    @property
    def memory_bytes(self) -> float:
        """The matrix, its noise and what LAPACK works on; a round trip has two sides of directions besides (up to 7.1
        n^2 numbers were seen at n = 2,000)."""
        return 8.0 * (7.5 if self.round_trips else 3.0) * self.size**2


class TrueRankConfig(ExperimentConfig):
    """Measure the true log-P matrix of a generated language as the matrices of models trained on it are measured: one
    row after each test token."""

    kind: Literal["true_rank"] = "true_rank"
    corpus: CorpusConfig
    variant: Literal["float64", "float32", "noise"]
    """float64: the exact matrix, which float64 holds without rounding. float32: every value rounded to float32. noise:
    every value times 1 + eps g, eps of float32 and g standard normal, drawn anew for each place of the matrix."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Which rows, and which test tokens are predicted: as those of a language model."""

    @field_validator("corpus")
    @classmethod
    def _whole_language(cls, corpus: CorpusConfig) -> CorpusConfig:
        if markov_rank(corpus.name) is None:
            raise ValueError(
                f"the true log P is known of generated languages of a rank only, and {corpus.name!r} is none"
            )
        if corpus.vocabulary_limit is not None:
            raise ValueError(
                f"the true log P is known for the whole vocabulary only; leave vocabulary_limit None, not "
                f"{corpus.vocabulary_limit}"
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
        """The language in three matrices and as lists, the triangle, and a block of rows in its two precisions."""
        return 8.0 * 8 * MARKOV_TYPES**2 + 3 * 2**26


class WordPairsConfig(ExperimentConfig):
    """Count the pairs of the 13 word-similarity benchmarks that a corpus' vocabulary lacks (AAAI 2021, SM Table 13)."""

    kind: Literal["word_pairs"] = "word_pairs"
    text: Literal["ptb", "wikitext-2"]
    """The corpus. Its files, and the benchmarks', must have the published SHA-256, so that its name says all of it."""
