"""Estimates of the disk space that trials need."""

from __future__ import annotations

from orchestrator.plan import vocabulary_size
from trainables.config import AnyConfig, LanguageTrialConfig, model_size
from trainables.corpora import CorpusIdentity
from trainables.parameters import parameter_count

RECORDS_BYTES = 50_000
"""Disk space of one trial's result, spectrum, store rows and random-generator states."""
CHECKPOINTS = 3
"""A running trial keeps two checkpoints while it writes a third."""


def kept_bytes(config: AnyConfig, corpus: CorpusIdentity) -> int:
    """Return the bytes that a done trial keeps on disk: weights and records."""
    return _weights_bytes(config, corpus) + RECORDS_BYTES


def running_bytes(config: AnyConfig, corpus: CorpusIdentity) -> int:
    """Return the most disk space that a running trial takes, in bytes."""
    if not isinstance(config, LanguageTrialConfig):
        return kept_bytes(config, corpus)
    # Weights, their average (if any), the best weights, and the optimizer's moments.
    copies = model_size(config).kept
    return CHECKPOINTS * (copies * _weights_bytes(config, corpus) + RECORDS_BYTES) + kept_bytes(
        config, corpus
    )


def _weights_bytes(config: AnyConfig, corpus: CorpusIdentity) -> int:
    if not isinstance(config, LanguageTrialConfig):
        return 0
    return 4 * parameter_count(config, vocabulary_size(config, corpus))
