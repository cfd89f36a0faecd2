"""Ranks of a true log-P matrix."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from trainables.config.built_in_corpora import MARKOV_TOKENS, MARKOV_TYPES, markov_rank
from trainables.config.experiments.experiment import ExperimentConfig
from trainables.config.language_model import CorpusConfig, EvaluationConfig
from trainables.errors import UserError


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
