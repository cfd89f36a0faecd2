"""How much disk trials will take, before they run."""

from __future__ import annotations

from orchestrator.plan import vocabulary_size
from trainables.config import AnyConfig, LanguageTrialConfig, model_size
from trainables.corpora import CorpusIdentity
from trainables.parameters import parameter_count

RECORDS_BYTES = 50_000
"""Result and spectrum of a trial, its rows in a store beside them, and the states of random
generators."""
CHECKPOINTS = 3
"""Of a trial under way: two are kept while the next one is written."""


def kept_bytes(config: AnyConfig, corpus: CorpusIdentity) -> int:
    """What a trial leaves for good: its weights, if it has any, and its records."""
    return _weights_bytes(config, corpus) + RECORDS_BYTES


def running_bytes(config: AnyConfig, corpus: CorpusIdentity) -> int:
    """The most that a trial takes while it runs."""
    if not isinstance(config, LanguageTrialConfig):
        return kept_bytes(config, corpus)
    # Weights, their average where there is one, the kept ones, and the optimiser's moments.
    copies = model_size(config).kept
    return CHECKPOINTS * (copies * _weights_bytes(config, corpus) + RECORDS_BYTES) + kept_bytes(
        config, corpus
    )


def _weights_bytes(config: AnyConfig, corpus: CorpusIdentity) -> int:
    if not isinstance(config, LanguageTrialConfig):
        return 0
    return 4 * parameter_count(config, vocabulary_size(config, corpus))
