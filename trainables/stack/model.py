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

from trainables.language_model import AwdLstm, LstmState
from trainables.stack.lstm import StackedState, stacked_lstm
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
    """Of models in the order of the kinds of their output layers."""

    def __init__(self, models: Sequence[AwdLstm], weights: Weights) -> None:
        self.weights = weights
        self._layers = len(models[0].layers)
        self._outputs = [StackedOutput([model.output for model in models[part]], part) for part in weights.parts]

    def contexts(
        self, tokens_GTB: Tensor, states: Sequence[StackedState], lengths_G: Tensor, masks: Masks | None = None
    ) -> StackedContexts:
        """Read a window a model; without masks, nothing is dropped."""
        hidden = self._embedded(tokens_GTB, masks)
        undropped, after = hidden, list[StackedState]()
        for number, state in enumerate(states):
            ih, hh, *biases = (self.weights[f"layers.{number}.{name}"] for name in LSTM_WEIGHTS)
            kept = masks.weights[number] if masks is not None else None
            weights = (ih, hh if kept is None else hh * kept, biases[0], biases[1])
            undropped, ended = stacked_lstm(hidden, state, weights, lengths_G)
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
                    masks.latent[output.part] if masks is not None else (),
                )
                for output in self._outputs
            ]
        )


def stacked_states(states: Sequence[Sequence[LstmState]]) -> list[StackedState]:
    """Of the layers, from those of every model."""
    layers = zip(*states, strict=True)
    return [StackedState(*(torch.cat([state[part] for state in layer]) for part in (0, 1))) for layer in layers]
