"""The models of a stack as one: from tokens to contexts, and from contexts to every model's loss.

Shapes: G models, T time steps of the longest window, B batch, N = T B rows, V vocabulary, D width of the embeddings, C
of the contexts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import embedding

from trainables.device import network_dtype
from trainables.language_model import LanguageModel, LstmState
from trainables.stack.lstm import LstmWeights, StackedState, stacked_lstm
from trainables.stack.masks import Masks
from trainables.stack.outputs import StackedOutput
from trainables.stack.weights import Weights

LSTM_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class StackedContexts(NamedTuple):
    """The context vectors of one window, G x T x B x C, as `trainables.language_model.Contexts` has them."""

    h3: Tensor
    dropped: Tensor
    states: list[StackedState]
    """Of every layer, after the last step of each model's own window."""


class StackedModel:
    """Of models in the order of the kinds of their output layers, which train in one precision."""

    def __init__(self, models: Sequence[LanguageModel], weights: Weights) -> None:
        self.weights = weights
        self._precision = models[0].precision
        self._outputs = [StackedOutput([model.output for model in models[part]], part) for part in weights.parts]

    def contexts(
        self, tokens_GTB: Tensor, states: Sequence[StackedState], lengths_G: Tensor, masks: Masks | None = None
    ) -> StackedContexts:
        """Read a window a model; without masks, as outside training, nothing is dropped, nor cast for products."""
        hidden = self._embedded(tokens_GTB, masks)
        dtype = network_dtype(self._precision if masks is not None else "float32", hidden)
        undropped, after = hidden, list[StackedState]()
        for number, state in enumerate(states):
            weights = LstmWeights(*(self.weights[f"layers.{number}.{name}"] for name in LSTM_WEIGHTS))
            if masks is not None:
                weights = weights._replace(kept_hh=masks.weights[number])
            undropped, ended = stacked_lstm(hidden, state, weights, lengths_G, dtype)
            dropout = masks.hidden[number] if masks is not None else None
            hidden = undropped if dropout is None else undropped * dropout.unsqueeze(1)
            after.append(ended)
        return StackedContexts(undropped, hidden, after)

    def _embedded(self, tokens_GTB: Tensor, masks: Masks | None) -> Tensor:
        embedding_GVD = self.weights["embedding_VD"]
        models, words, width = embedding_GVD.shape
        rows_GTB = tokens_GTB + words * torch.arange(models, device=tokens_GTB.device)[:, None, None]
        embedded_GTBD = embedding(rows_GTB, embedding_GVD.view(-1, width))
        if masks is None:
            return embedded_GTBD
        if masks.words_GV is not None:
            embedded_GTBD = embedded_GTBD * masks.words_GV.view(-1)[rows_GTB].unsqueeze(3)
        if masks.noise_GTBD is not None:
            embedded_GTBD = embedded_GTBD + masks.noise_GTBD
        return embedded_GTBD if masks.embedded_GBD is None else embedded_GTBD * masks.embedded_GBD.unsqueeze(1)

    def losses(self, hidden_GTBC: Tensor, rows: tuple[Tensor, Tensor], masks: Masks | None = None) -> Tensor:
        """Every model's mean cross-entropy, G; `rows` are the targets, G x N, and what each weighs in that mean."""
        return torch.cat(
            [
                output.losses(
                    hidden_GTBC[output.part],
                    self.weights["embedding_VD"][output.part],
                    (rows[0][output.part], rows[1][output.part]),
                    self.weights.of_output(output.part),
                    masks.latent[output.part] if masks is not None else None,
                )
                for output in self._outputs
            ]
        )


def stacked_states(states: Sequence[Sequence[LstmState]]) -> list[StackedState]:
    """Of the layers, from those of every model."""
    layers = zip(*states, strict=True)
    return [StackedState(*(torch.cat([state[part] for state in layer]) for part in (0, 1))) for layer in layers]
