"""Configs of trials without a language model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeFloat, NonNegativeInt, field_validator

from trainables.config.built_in_corpora import MARKOV_TOKENS, MARKOV_TYPES, markov_rank
from trainables.config.frozen import Identified
from trainables.config.language_model import CorpusConfig, EvaluationConfig


class ExperimentConfig(Identified):
    """Config of a trial without checkpoints: a killed trial starts over."""

    schema_version: Literal[1, 2] = 1
    kind: str

    @property
    def family(self) -> str:
        """Return a group name. Measured times correct the time estimates of the same group."""
        return self.kind

    @property
    def parameters(self) -> int:
        """Return the number of fitted parameters."""
        return 0

    @property
    def operations(self) -> float:
        """Return the approximate number of operations.

        The default is the cost of reading megabytes of text.
        """
        return 1e10

    @property
    def memory_bytes(self) -> float:
        """Return the approximate bytes of all arrays. The default is for a text and its words."""
        return 3e8


class PressNoiseConfig(ExperimentConfig):
    """Compute ranks of an n x n log-P matrix after adding noise, or after SVD round trips.

    A round trip computes the SVD and multiplies its factors. Source: AAAI 2021, SM Algorithms 1 and
    2.
    """

    schema_version: Literal[2] = 2
    kind: Literal["press_noise"] = "press_noise"
    size: Annotated[int, Field(ge=20)] = 10_000
    rank: Annotated[int, Field(ge=3, le=18)] = 10
    """Number of singular values to keep, of the matrix's 18. They are scaled so that the largest is
    1."""
    noise_variance: NonNegativeFloat = 0.0
    """Each entry's Gaussian noise has this variance, divided by `size`^2."""
    round_trips: NonNegativeInt = 0
    precision: Literal["float32", "float64"] = "float64"
    """Precision of the matrix and its round trips, and of eps in the Press tolerance."""

    @property
    def operations(self) -> float:
        """Return operations as measured on one core: 18 n^3 per SVD, or 4 n^3 with noise."""
        return (18.0 * (self.round_trips + 1) if self.round_trips else 4.0) * self.size**3

    @property
    def memory_bytes(self) -> float:
        """Return the approximate bytes of all arrays.

        With noise, these are the matrix, the noise and the Gram matrix. With round trips, they are
        two matrices, both singular bases and LAPACK's workspace.
        """
        return 8.0 * (9.5 if self.round_trips else 3.3) * self.size**2


class TrueRankConfig(ExperimentConfig):
    """Compute ranks of a generated language's true log-P matrix, with one row per test token."""

    kind: Literal["true_rank"] = "true_rank"
    corpus: CorpusConfig
    variant: Literal["float64", "float32", "noise"]
    """`float64` keeps the matrix, `float32` rounds it. `noise` multiplies every entry by 1 + eps g,
    with float32's eps and a new standard normal g."""
    evaluation: EvaluationConfig = EvaluationConfig()

    @field_validator("corpus")
    @classmethod
    def _check_language(cls, corpus: CorpusConfig) -> CorpusConfig:
        if markov_rank(corpus.name) is None:
            raise ValueError(
                f"the true log P is known for markov and markov-R only, not for {corpus.name!r}"
            )
        if corpus.vocabulary_limit is not None:
            raise ValueError(
                "the true log P is known for the whole vocabulary only: set vocabulary_limit to "
                f"None, not {corpus.vocabulary_limit}"
            )
        return corpus

    @property
    def operations(self) -> float:
        """Return the operations of a QR decomposition and of the triangle's singular values."""
        rows = self.evaluation.test_tokens or MARKOV_TOKENS["test"]
        rows = min(rows, self.evaluation.rank_contexts or rows)
        return 2.0 * rows * MARKOV_TYPES**2 + 4.0 * MARKOV_TYPES**3

    @property
    def memory_bytes(self) -> float:
        """Return the approximate bytes of all arrays."""
        return 8.0 * 8 * MARKOV_TYPES**2 + 3 * 2**26


class WordPairsConfig(ExperimentConfig):
    """Count benchmark pairs with a word outside the vocabulary (AAAI 2021, SM Table 13)."""

    kind: Literal["word_pairs"] = "word_pairs"
    text: Literal["ptb", "wikitext-2"]
    """Published corpus, whose name identifies its files."""
