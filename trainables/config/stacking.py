"""Which trials can be trained as one: those of equal shapes, on one text, with one kind of step."""

from __future__ import annotations

from collections.abc import Hashable

from trainables.config.kinds import AnyConfig
from trainables.config.language_model import TrialConfig
from trainables.config.output_layer import (
    GssConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MocConfig,
    MosConfig,
    MosPlifConfig,
    SigSoftmaxConfig,
    SoftcapConfig,
    SoftmaxConfig,
)

STACKED_LAYERS = (
    SoftmaxConfig,
    SigSoftmaxConfig,
    GssConfig,
    SoftcapConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MosConfig,
    MocConfig,
    MosPlifConfig,
)
"""Output layers that a stack has; a trial with any other trains alone."""


def stack_key(config: AnyConfig) -> Hashable | None:
    """Trials with equal keys can be trained as one stack, whatever else differs; None for one that trains alone."""
    if not (isinstance(config, TrialConfig) and isinstance(config.output_layer, STACKED_LAYERS)):
        return None
    if config.model.head_rank is not None:
        return None
    model, training, evaluation = config.model, config.training, config.evaluation
    return (
        (config.corpus.name, config.corpus.sha256, config.corpus.vocabulary_limit),
        (model.embedding_width, model.hidden_width, model.context_width),
        (training.batch_size, training.optimizer, training.precision),
        (evaluation.valid_tokens, evaluation.valid_batch_size, evaluation.window),
    )
