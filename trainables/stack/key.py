"""Decide which trials can share a stack."""

from __future__ import annotations

from collections.abc import Hashable

from trainables.config import (
    AnyConfig,
    CustomConfig,
    LanguageTrialConfig,
    MonotoneNnConfig,
    TransformerTrialConfig,
)

UNSTACKED_LAYERS = (MonotoneNnConfig, CustomConfig)


def stack_key(config: AnyConfig) -> Hashable | None:
    """Return a key; trials with equal keys can share a stack. None: the trial trains alone."""
    if not isinstance(config, LanguageTrialConfig) or isinstance(
        config.output_layer, UNSTACKED_LAYERS
    ):
        return None
    step: Hashable
    shapes: Hashable
    if isinstance(config, TransformerTrialConfig):
        shapes = config.model.width, config.model.layers, config.model.heads, config.model.head
        step = config.training.window, config.training.beta1, config.training.beta2
    else:
        shapes, step = config.model.layer_widths, config.training.optimizer
    training = config.training.batch_size, config.training.precision
    return config.corpus, shapes, config.model.head_rank, step, training, config.evaluation
