"""Differences between stacks of AWD-LSTMs and of Transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from trainables.config import (
    LanguageTrialConfig,
    MixtureConfig,
    TransformerTrialConfig,
    TrialConfig,
)
from trainables.language_model import AwdLstm, LanguageModel
from trainables.stack.awd_lstm import ActivationPenalties, StackedAwdLstm, lstm_draws
from trainables.stack.masks import Draw
from trainables.stack.model import StackedContexts, StackedModel
from trainables.stack.outputs import latent_mask
from trainables.stack.transformer import StackedTransformer, transformer_draws
from trainables.stack.weights import Weights

Penalties = Callable[[StackedContexts, Tensor], Tensor]
"""Function from contexts and `within_GT` to each model's additional loss, G."""


def stacked_model(models: Sequence[LanguageModel], weights: Weights) -> StackedModel:
    """Return a stack of `models`, which are ordered by the kind of their output layers."""
    kind = StackedAwdLstm if isinstance(models[0], AwdLstm) else StackedTransformer
    return kind(models, weights)


def draws_of(config: LanguageTrialConfig, vocabulary: int, longest: int) -> list[Draw]:
    """Return a model's random draws in a step, in the model's order, without draws of rate 0.

    No window exceeds `longest` steps; all Transformer windows have that length.
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
    trainings = [config.training for config in configs if isinstance(config, TrialConfig)]
    return ActivationPenalties(trainings, like) if trainings else None
