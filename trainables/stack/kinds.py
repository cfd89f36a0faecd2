"""Differences between stacks of AWD-LSTMs and of Transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from torch import Tensor

from trainables.config import (
    LanguageTrialConfig,
    MixtureConfig,
    TransformerTrialConfig,
    TrialConfig,
)
from trainables.language_model import AwdLstm, LanguageModel
from trainables.stack.awd_lstm import StackedAwdLstm, activation_penalties, lstm_draws
from trainables.stack.masks import Draw
from trainables.stack.model import StackedContexts, StackedModel
from trainables.stack.outputs import latent_mask
from trainables.stack.transformer import StackedTransformer, transformer_draws
from trainables.stack.weights import Weights

Penalties = Callable[[StackedContexts, Tensor], Tensor]
"""Function of the contexts and `within_GT` that returns each model's additional loss, shape G."""


def stacked_model(models: Sequence[LanguageModel], weights: Weights) -> StackedModel:
    """Return `models` as one model. Models of equal `output_kind` must be adjacent."""
    kind = StackedAwdLstm if isinstance(models[0], AwdLstm) else StackedTransformer
    return kind(models, weights)


def draws_of(config: LanguageTrialConfig, vocabulary: int, longest: int) -> list[Draw]:
    """Return the masks and noise that a model draws per step, in order, except those of rate 0.

    `longest` is the maximum time steps of a window; all Transformer windows have that length.
    """
    if isinstance(config, TransformerTrialConfig):
        draws = transformer_draws(config, longest)
    else:
        draws = lstm_draws(config, vocabulary)
    if isinstance(layer := config.output_layer, MixtureConfig):
        width = layer.mixtures * config.model.embedding_width
        shape = config.training.batch_size, width
        draws.append(Draw(latent_mask(width), shape, layer.latent_dropout))
    return [draw for draw in draws if draw.rate]


def penalties_of(configs: Sequence[LanguageTrialConfig], like: Tensor) -> Penalties | None:
    """Return the activation penalties of AWD-LSTMs; None for Transformers."""
    rates_G2 = [
        (
            config.training.activation_regularisation,
            config.training.temporal_activation_regularisation,
        )
        for config in configs
        if isinstance(config, TrialConfig)
    ]
    return partial(activation_penalties, like.new_tensor(rates_G2).T) if rates_G2 else None
