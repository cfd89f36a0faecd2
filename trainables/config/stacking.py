"""Which trials can be trained as one: those of equal shapes, on one text, with one kind of step."""

from __future__ import annotations

from collections.abc import Hashable

from trainables.config.kinds import AnyConfig, LanguageTrialConfig
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
from trainables.config.transformer import TransformerTrialConfig

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
    """Trials with equal keys can be trained as one stack, whatever else differs; None for one that
    trains alone."""
    if not isinstance(config, LanguageTrialConfig) or not isinstance(
        config.output_layer, STACKED_LAYERS
    ):
        return None
    evaluation = config.evaluation
    return (
        (config.corpus.name, config.corpus.sha256, config.corpus.vocabulary_limit),
        _transformer_key(config)
        if isinstance(config, TransformerTrialConfig)
        else _lstm_key(config),
        (config.training.batch_size, config.training.precision),
        (evaluation.valid_tokens, evaluation.valid_batch_size, evaluation.window),
    )


def _lstm_key(config: TrialConfig) -> Hashable:
    model, training = config.model, config.training
    return (
        model.embedding_width,
        model.hidden_width,
        model.context_width,
        model.head_rank,
    ), training.optimizer


def _transformer_key(config: TransformerTrialConfig) -> Hashable:
    model, training = config.model, config.training
    shapes = model.width, model.layers, model.heads, model.head, model.head_rank
    return shapes, (training.window, training.beta1, training.beta2)
