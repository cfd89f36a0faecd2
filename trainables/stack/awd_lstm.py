"""AWD-LSTM stacks and their activation penalties."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor
from typing_extensions import override

from trainables.config import TrialConfig
from trainables.stack.lstm import LstmWeights, StackedState, stacked_lstm
from trainables.stack.masks import NOISE, Draw, Masks
from trainables.stack.model import StackedContexts, StackedModel

LSTM_WEIGHTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


def lstm_draws(config: TrialConfig, vocabulary: int) -> list[Draw]:
    """Return the masks and noise that an AWD-LSTM draws per step, in the order of drawing.

    The list does not include the mask of the output layer.
    """
    model, batch = config.model, config.training.batch_size
    embedded = batch, model.embedding_width
    draws = [
        Draw("words", (vocabulary,), model.dropout_embedding_matrix),
        Draw(NOISE, embedded, model.embedding_noise),
        Draw("embedded", embedded, model.dropout_embedding),
    ]
    widths = [out for _, out in model.layer_widths]
    for number, width in enumerate(widths):
        rate = model.dropout_hidden if number + 1 < len(widths) else model.dropout_output
        draws.append(Draw(f"weights.{number}", (4 * width, width), model.dropconnect))
        draws.append(Draw(f"hidden.{number}", (batch, width), rate))
    return draws


class StackedAwdLstm(StackedModel):
    """Several `AwdLstm` models as one."""

    @override
    def contexts(
        self,
        tokens_GTB: Tensor,
        states: Sequence[StackedState],
        lengths_G: Tensor,
        masks: Masks | None = None,
    ) -> StackedContexts:
        draws = masks or {}
        dtype = self.network_dtype(masks)
        undropped, dropout = self._embedded(tokens_GTB, draws), draws.get("embedded")
        new_states = list[StackedState]()
        for number, state in enumerate(states):
            weights = LstmWeights(
                *(self.weights[f"layers.{number}.{name}"] for name in LSTM_WEIGHTS)
            )
            weights = weights._replace(mask_hh=draws.get(f"weights.{number}"), mask_inputs=dropout)
            undropped, new_state = stacked_lstm(undropped, state, weights, lengths_G, dtype)
            dropout = draws.get(f"hidden.{number}")
            new_states.append(new_state)
        hidden = undropped if dropout is None else undropped * dropout.unsqueeze(1)
        return StackedContexts(hidden, undropped, new_states)

    def _embedded(self, tokens_GTB: Tensor, draws: Masks) -> Tensor:
        rows_GTB, embedded_GTBD = self.embedded(tokens_GTB)
        if (words_GV := draws.get("words")) is not None:
            embedded_GTBD = embedded_GTBD * words_GV.reshape(-1)[rows_GTB].unsqueeze(3)
        if (noise_GTBD := draws.get(NOISE)) is not None:
            embedded_GTBD = embedded_GTBD + noise_GTBD[:, : embedded_GTBD.shape[1]]
        return embedded_GTBD


def activation_penalties(rates_2G: Tensor, contexts: StackedContexts, within_GT: Tensor) -> Tensor:
    """Return each model's penalty, G: the two activation regularisers of `LstmRecipe`.

    `rates_2G` has their factors. `within_GT` is 1 in a model's window and 0 after it.
    """
    undropped_GTBC = contexts.undropped_GTBC
    batch, width = undropped_GTBC.shape[2:]
    counts_G = within_GT.sum(1) * batch * width
    activation_G = (contexts.dropped_GTBC.square().sum((2, 3)) * within_GT).sum(1) / counts_G
    changes_GT = (undropped_GTBC[:, 1:] - undropped_GTBC[:, :-1]).square().sum((2, 3)) * within_GT[
        :, 1:
    ]
    change_G = changes_GT.sum(1) / (counts_G - batch * width)
    return rates_2G[0] * activation_G + rates_2G[1] * change_G
