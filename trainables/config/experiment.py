"""Configs of trials without a language model."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, field_validator

from trainables.config.built_in_corpora import MARKOV_TOKENS, MARKOV_TYPES, markov_rank
from trainables.config.frozen import Identified, NonNegative
from trainables.config.language_model import CorpusConfig, EvaluationConfig


class ExperimentConfig(Identified):
    """Config of a trial without checkpoints: a killed trial starts over."""

    schema_version: Literal[1, 2] = 1
    kind: str

    @property
    def family(self) -> str:
        """Return a key shared by trials of similar cost."""
        return self.kind

    @property
    def parameters(self) -> int:
        """Return the number of fitted parameters."""
        return 0

    @property
    def operations(self) -> float:
        """Return approximate operations; the default is for reading megabytes of text."""
        return 1e10

    @property
    def memory_bytes(self) -> float:
        """Return the arrays' approximate bytes; the default is for a text and its words."""
        return 3e8


class PressNoiseConfig(ExperimentConfig):
    """Ranks of a truncated n x n log-P matrix, with Gaussian noise or after SVD round trips.

    Source: AAAI 2021, SM Algorithms 1 and 2.
    """

    schema_version: Literal[2] = 2
    kind: Literal["press_noise"] = "press_noise"
    size: Annotated[int, Field(ge=20)] = 10_000
    """n: contexts (rows) and words (columns)."""
    rank: Annotated[int, Field(ge=3, le=18)] = 10
    """Number of singular values to keep, out of 18. All are divided by the largest value."""
    noise_variance: NonNegative = 0.0
    """c: noise entries have variance c / n^2."""
    round_trips: NonNegativeInt = 0
    """Number of SVDs, each multiplied back without truncation."""
    precision: Literal["float32", "float64"] = "float64"
    """Precision of the matrix, its round trips, and eps in the Press tolerance."""

    @property
    def operations(self) -> float:
        """Return measured costs on one core: 18 n^3 per SVD and product, 4 n^3 for noise."""
        return (18.0 * (self.round_trips + 1) if self.round_trips else 4.0) * self.size**3

    @property
    def memory_bytes(self) -> float:
        """Return the bytes of matrix, noise and Gram matrix.

        For round trips: two matrices, both singular bases and LAPACK's workspace.
        """
        return 8.0 * (9.5 if self.round_trips else 3.3) * self.size**2


class TrueRankConfig(ExperimentConfig):
    """The true log-P matrix of a generated language, one row per test token."""

    kind: Literal["true_rank"] = "true_rank"
    corpus: CorpusConfig
    variant: Literal["float64", "float32", "noise"]
    """float64: exact. float32: rounded. noise: every entry is multiplied by 1 + eps g, with
    float32's eps. Each entry has its own standard normal g."""
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
        """Return the operations to reduce the matrix to a triangle and find singular values."""
        rows = self.evaluation.test_tokens or MARKOV_TOKENS["test"]
        rows = min(rows, self.evaluation.rank_contexts or rows)
        return 2.0 * rows * MARKOV_TYPES**2 + 4.0 * MARKOV_TYPES**3

    @property
    def memory_bytes(self) -> float:
        """Return bytes of matrices, their lists, the triangle, and rows in two precisions."""
        return 8.0 * 8 * MARKOV_TYPES**2 + 3 * 2**26


class WordPairsConfig(ExperimentConfig):
    """Count benchmark word pairs with a word missing in a vocabulary (AAAI 2021, SM Table 13)."""

    kind: Literal["word_pairs"] = "word_pairs"
    text: Literal["ptb", "wikitext-2"]
    """Corpus. Its name suffices as identity, because all files are the published ones."""
