"""What differs between stacks of AWD-LSTMs and of Transformers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from torch import Tensor

from trainables.config import LanguageTrialConfig, TrialConfig
from trainables.language_model import AwdLstm, LanguageModel
from trainables.stack.awd_lstm import ActivationPenalties, StackedAwdLstm
from trainables.stack.model import StackedContexts, StackedModel
from trainables.stack.transformer import StackedTransformer
from trainables.stack.weights import Weights

Penalties = Callable[[StackedContexts, Tensor], Tensor]
"""Of contexts, and of which time steps are within a model's window, G x T: what every model's training adds to its
loss, G."""


def stacked_model(models: Sequence[LanguageModel], weights: Weights) -> StackedModel:
    """Of models of one kind, in the order of the kinds of their output layers."""
    kind = StackedAwdLstm if isinstance(models[0], AwdLstm) else StackedTransformer
    return kind(models, weights)


def penalties_of(configs: Sequence[LanguageTrialConfig], like: Tensor) -> Penalties | None:
    """Of trainings of one kind, on the device of this tensor; None where nothing is added."""
    trainings = [config.training for config in configs if isinstance(config, TrialConfig)]
    return ActivationPenalties(trainings, like) if trainings else None
