"""Estimated operations and memory of language-model training."""

from __future__ import annotations

from dataclasses import dataclass

from trainables.config.kinds import LanguageTrialConfig
from trainables.config.language_model import TrialConfig
from trainables.config.output_layer import MixtureConfig
from trainables.config.transformer import TransformerTrialConfig

LONGEST_DRAW = 40
"""Number of tokens by which a window of random length can exceed `bptt`."""


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Numbers that determine the time and memory of a language model's training."""

    products: float
    """Multiplications per token in a forward pass, without the output layer."""
    tokens: int
    """Tokens in the largest possible batch."""
    activations: int
    """Numbers per token that are kept for the backward pass, without the output layer."""
    copies: int
    """Copies of the weights in training, including gradients and the optimiser's moments."""
    kept: int
    """Copies of the weights in a checkpoint."""


def model_size(config: LanguageTrialConfig) -> ModelSize:
    """Return the size of a trial's model."""
    return _transformer(config) if isinstance(config, TransformerTrialConfig) else _awd_lstm(config)


def head_products(config: LanguageTrialConfig, vocabulary: int) -> float:
    """Return the multiplications per token that form a low-rank head A B, or 0.

    A step forms the head once for all of its tokens.
    """
    model, tokens = config.model, model_size(config).tokens
    return vocabulary * (model.head_rank or 0) * model.embedding_width / tokens


def _awd_lstm(config: TrialConfig) -> ModelSize:
    # Copies: weights, gradients twice, average and kept weights; with Adam, also two moments.
    model, training = config.model, config.training
    adam = training.optimizer == "adam"
    return ModelSize(
        products=float(
            sum(4 * outputs * (inputs + outputs) for inputs, outputs in model.layer_widths)
        ),
        tokens=(training.bptt + LONGEST_DRAW) * training.batch_size,
        activations=2 * model.embedding_width
        + sum(10 * outputs for _, outputs in model.layer_widths),
        copies=7 if adam else 5,
        kept=5 if adam else 3,
    )


def _transformer(config: TransformerTrialConfig) -> ModelSize:
    # Copies: weights, gradients twice, two moments and kept weights. A layer has four d x d
    # matrices and SwiGLU's three. Attention may keep every head's weights over the window.
    model, window = config.model, config.training.window
    width, feed_forward = model.width, model.feed_forward_width
    return ModelSize(
        products=float(
            model.layers * (4 * width**2 + 3 * width * feed_forward + 2 * window * width)
        ),
        tokens=window * config.training.batch_size,
        activations=2 * width
        + model.layers * (12 * width + 4 * feed_forward + 2 * model.heads * window),
        copies=6,
        kept=4,
    )


def mixture_products(config: LanguageTrialConfig) -> float:
    """Return the multiplications per token that compute a mixture's K context vectors, or 0."""
    model, layer = config.model, config.output_layer
    if not isinstance(layer, MixtureConfig):
        return 0.0
    return float(layer.mixtures * model.context_width * model.embedding_width)
