"""The models of a stack as one: from tokens to context vectors, and to each model's loss."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import embedding

from trainables.device import network_dtype
from trainables.language_model import LanguageModel, LstmState
from trainables.stack.lstm import StackedState
from trainables.stack.masks import Masks
from trainables.stack.outputs import StackedOutput
from trainables.stack.weights import Weights


@dataclass(frozen=True)
class StackedContexts:
    """Context vectors of one window, with and without dropout.

    `state` has one entry per layer: each model's state at the end of its own window.
    """

    dropped_GTBC: Tensor
    undropped_GTBC: Tensor
    state: list[StackedState]


class StackedModel(ABC):
    """Several models of one precision as one. Models of equal `output_kind` are adjacent."""

    def __init__(self, models: Sequence[LanguageModel], weights: Weights) -> None:
        self.weights = weights
        self._precision = models[0].precision
        self._outputs = [
            StackedOutput([model.output for model in models[part]], part, parameters)
            for part, parameters in weights.outputs
        ]

    @abstractmethod
    def contexts(
        self,
        tokens_GTB: Tensor,
        states: Sequence[StackedState],
        lengths_G: Tensor,
        masks: Masks | None = None,
    ) -> StackedContexts:
        """Return the context vectors of one window per model.

        Outside training, pass no `masks`: no dropout, and products in the weights' dtype.
        """

    def network_dtype(self, masks: Masks | None) -> torch.dtype:
        """Return the dtype of matrix products before the output layer."""
        return network_dtype(
            self._precision if masks is not None else "float32", self.weights["embedding_VD"]
        )

    def embedded(self, tokens_GTB: Tensor) -> tuple[Tensor, Tensor]:
        """Return each token's row number in the stacked embeddings, and its embedding."""
        embedding_GVD = self.weights["embedding_VD"]
        models, words, width = embedding_GVD.shape
        rows_GTB = (
            tokens_GTB + words * torch.arange(models, device=tokens_GTB.device)[:, None, None]
        )
        return rows_GTB, embedding(rows_GTB, embedding_GVD.view(-1, width))

    def output_weight(self) -> Tensor:
        """Return the output layers' weights, G x V x D; differentiable."""
        weights = self.weights
        if "head.left_VR" in weights:
            return torch.bmm(weights["head.left_VR"], weights["head.right_RD"])
        return weights["head.weight_VD" if "head.weight_VD" in weights else "embedding_VD"]

    def losses(
        self,
        hidden_GTBC: Tensor,
        weight_GVD: Tensor,
        rows: tuple[Tensor, Tensor],
        masks: Masks | None = None,
    ) -> Tensor:
        """Return each model's mean cross-entropy, shape G.

        `rows` has the targets and each target's weight in the mean, both G x N.
        """
        return torch.cat(
            [out.losses(hidden_GTBC, weight_GVD, rows, masks) for out in self._outputs]
        )


def stacked_states(states: Sequence[Sequence[LstmState]]) -> list[StackedState]:
    """Stack the models' states layer by layer; `states[g]` has the layers' states of model g."""
    layers = zip(*states, strict=True)
    return [
        StackedState(*(torch.cat([state[part] for state in layer]) for part in (0, 1)))
        for layer in layers
    ]
