"""Transformers of a stack. All their windows are equally long.

Further shapes: F width of the feed-forward layer, X width of several products side by side, I
input and O output width of a product.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn.functional import rms_norm, silu
from typing_extensions import override

from trainables.config import TransformerTrialConfig
from trainables.language_model import (
    NORM_EPSILON,
    LanguageModel,
    Rotation,
    Transformer,
    causal_attention,
    rotation_of,
)
from trainables.stack.lstm import StackedState
from trainables.stack.masks import Draw, Masks
from trainables.stack.model import StackedContexts, StackedModel
from trainables.stack.weights import Weights


def transformer_draws(config: TransformerTrialConfig, steps: int) -> list[Draw]:
    """Return a Transformer's masks per step in order, except the output layer's mask.

    All windows have `steps` time steps.
    """
    model = config.model
    shape = config.training.batch_size, steps, model.width
    names = [
        f"{branch}.{number}"
        for number in range(model.layers)
        for branch in ("attention", "feed_forward")
    ]
    return [Draw(name, shape, model.dropout) for name in ("embedded", *names)]


class StackedTransformer(StackedModel):
    """Transformers of equal shapes as one."""

    def __init__(self, models: Sequence[LanguageModel], weights: Weights) -> None:
        super().__init__(models, weights)
        first = models[0]
        assert isinstance(first, Transformer)
        self._config, self._deviation = first.config, first.embedding_deviation

    @override
    def contexts(
        self,
        tokens_GTB: Tensor,
        states: Sequence[StackedState],
        lengths_G: Tensor,
        masks: Masks | None = None,
    ) -> StackedContexts:
        draws = masks or {}
        dtype, config = self.network_dtype(masks), self._config
        _, embedded_GBTD = self.embedded(tokens_GTB.transpose(1, 2))
        rotation = rotation_of(
            tokens_GTB.shape[1], config.width // config.heads, dtype, tokens_GTB.device
        )
        hidden_GBTD = _apply_dropout(embedded_GBTD / self._deviation, draws.get("embedded"))
        for number in range(config.layers):
            layer = f"layers.{number}"
            attention = self._attention(
                self._norm(hidden_GBTD, f"{layer}.attention_norm", dtype), layer, rotation
            )
            hidden_GBTD = hidden_GBTD + _apply_dropout(attention, draws.get(f"attention.{number}"))
            feed_forward = self._feed_forward(
                self._norm(hidden_GBTD, f"{layer}.feed_forward_norm", dtype), layer
            )
            hidden_GBTD = hidden_GBTD + _apply_dropout(
                feed_forward, draws.get(f"feed_forward.{number}")
            )
        contexts_GTBD = self._norm(hidden_GBTD, "norm", hidden_GBTD.dtype).transpose(1, 2)
        return StackedContexts(contexts_GTBD, contexts_GTBD, list(states))

    def _norm(self, hidden_GBTD: Tensor, name: str, dtype: torch.dtype) -> Tensor:
        gain_GD = self.weights[f"{name}.weight"]
        return (
            rms_norm(hidden_GBTD, gain_GD.shape[1:], eps=NORM_EPSILON) * gain_GD[:, None, None]
        ).to(dtype)

    def _product(self, inputs_GBTI: Tensor, name: str) -> Tensor:
        weight_GOI = self.weights[f"{name}.weight_OI"].to(inputs_GBTI.dtype)
        return torch.bmm(inputs_GBTI.flatten(1, 2), weight_GOI.mT).view(*inputs_GBTI.shape[:3], -1)

    def _attention(self, inputs_GBTD: Tensor, layer: str, rotation: Rotation) -> Tensor:
        joint_GBTX = self._product(inputs_GBTD, f"{layer}.attention.query_key_value")
        # Attention stays within a sequence, so the models' batches can be one batch.
        attended_BTD = causal_attention(joint_GBTX.flatten(0, 1), self._config.heads, rotation)
        attended_GBTD = attended_BTD.view(inputs_GBTD.shape)
        return self._product(attended_GBTD, f"{layer}.attention.projection")

    def _feed_forward(self, inputs_GBTD: Tensor, layer: str) -> Tensor:
        gate_GBTF, up_GBTF = self._product(inputs_GBTD, f"{layer}.feed_forward.gate_up").chunk(
            2, -1
        )
        return self._product(silu(gate_GBTF) * up_GBTF, f"{layer}.feed_forward.projection")


def _apply_dropout(values: Tensor, mask: Tensor | None) -> Tensor:
    return values if mask is None else values * mask
