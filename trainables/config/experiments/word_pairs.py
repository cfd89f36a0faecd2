"""Word pairs that a vocabulary lacks."""

from __future__ import annotations

from typing import Literal

from trainables.config.experiments.experiment import ExperimentConfig


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
