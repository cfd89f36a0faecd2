"""What training a language model of either kind takes, token by token: the arithmetic behind times
and memory."""

from __future__ import annotations

from dataclasses import dataclass

from trainables.config.kinds import LanguageTrialConfig
from trainables.config.language_model import TrialConfig
from trainables.config.output_layer import MixtureConfig
from trainables.config.transformer import TransformerTrialConfig

LONGEST_DRAW = 40
"""Tokens by which a window of truncated back-propagation may be longer than `bptt`."""


@dataclass(frozen=True, kw_only=True)
class ModelSize:
    """Of one model and the longest window of its batches."""

    products: float
    """Products a token between embedding and context vector, forward."""
    tokens: int
    """Of the longest window of a batch."""
    activations: int
    """Numbers a token that the way back needs, between embedding and context vector."""
    copies: int
    """Of the weights, in training: gradients, moments, averages and the kept ones among them."""
    kept: int
    """Of these, the ones in a checkpoint."""


def model_size(config: LanguageTrialConfig) -> ModelSize:
    """The size of a trial's model."""
    return _transformer(config) if isinstance(config, TransformerTrialConfig) else _awd_lstm(config)


def head_products(config: LanguageTrialConfig, vocabulary: int) -> float:
    """Products a token of making the output weights A B, once a step; 0 where they are one
    matrix."""
    model, tokens = config.model, model_size(config).tokens
    return vocabulary * (model.head_rank or 0) * model.embedding_width / tokens


def _awd_lstm(config: TrialConfig) -> ModelSize:
    """Weights, their gradients twice, average and kept copy; with Adam two moments."""
    model, training = config.model, config.training
    adam = training.optimizer == "adam"
    return ModelSize(
        products=float(sum(4 * out * (into + out) for into, out in model.layer_widths)),
        tokens=(training.bptt + LONGEST_DRAW) * training.batch_size,
        activations=2 * model.embedding_width + sum(10 * out for _, out in model.layer_widths),
        copies=7 if adam else 5,
        kept=5 if adam else 3,
    )


def _transformer(config: TransformerTrialConfig) -> ModelSize:
    """Weights, their gradients twice, two moments and kept copy. A layer has four d x d matrices
    and SwiGLU's three; its attention goes over the whole window, and is reckoned to keep the
    weights of every head."""
    model, window = config.model, config.training.window
    width, inner = model.width, model.feed_forward_width
    return ModelSize(
        products=float(model.layers * (4 * width**2 + 3 * width * inner + 2 * window * width)),
        tokens=window * config.training.batch_size,
        activations=2 * width + model.layers * (12 * width + 4 * inner + 2 * model.heads * window),
        copies=6,
        kept=4,
    )


def mixture_products(config: LanguageTrialConfig) -> float:
    """Products a token of the layer between a mixture's context vector and its experts; 0 for any
    other layer."""
    model, layer = config.model, config.output_layer
    if not isinstance(layer, MixtureConfig):
        return 0.0
    return float(layer.mixtures * model.context_width * model.embedding_width)
