"""What a scale makes of a Transformer trial: a lower rung of the ladder, on shorter windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from search_spaces.transformer import BATCH_SIZE, ladder
from trainables.config import TransformerConfig, TransformerTrialConfig


@dataclass(frozen=True, kw_only=True)
class TransformerScale:
    """How a scale shrinks a Transformer and its training. None leaves a value as it is at paper
    scale."""

    width: float
    """Factor on it, and on the rank of the head; layers, heads and learning rate follow by the
    ladder."""
    learning_rate: float = 1.0
    """Factor on it, beside the ladder's: a few hundred steps need larger ones than thousands."""
    window: int | None = None
    batch_size: int | None = None
    warm_up_tokens: int | None = None


TRANSFORMER_SCALES: Mapping[str, TransformerScale] = {
    "smoke": TransformerScale(width=1 / 32, window=16, batch_size=12, warm_up_tokens=1_000),
    "quick": TransformerScale(
        width=1 / 8, learning_rate=1.5, window=32, batch_size=16, warm_up_tokens=10_000
    ),
    "small": TransformerScale(width=1 / 2),
}
"""By name of the scale; at scale paper all stays."""


def shrunk_model(scale: TransformerScale, model: TransformerConfig) -> dict[str, Any]:
    """The sizes of the model at this scale.

    Whoever has left the ladder at paper scale stays beside it: twice its layers are twice the lower
    rung's."""
    narrow, wide = ladder(scaled_width(scale, model.width)), ladder(model.width)
    heads = max(1, round(model.heads * narrow.heads / wide.heads))
    rank = model.head_rank
    return {
        "width": narrow.width,
        "layers": max(1, round(model.layers * narrow.layers / wide.layers)),
        "heads": next(count for count in range(heads, 0, -1) if narrow.width % (2 * count) == 0),
        "head_rank": rank and scaled_rank(rank, model.width, narrow.width),
    }


def shrunk_training(scale: TransformerScale, config: TransformerTrialConfig) -> dict[str, Any]:
    """The settings of the training at this scale, epochs and their tokens aside."""
    training, width = config.training, config.model.width
    by_width = ladder(scaled_width(scale, width)).learning_rate / ladder(width).learning_rate
    return {
        "batch_size": in_proportion(training.batch_size, BATCH_SIZE, scale.batch_size),
        "window": scale.window or training.window,
        "learning_rate": training.learning_rate * by_width * scale.learning_rate,
        "warm_up_tokens": scale.warm_up_tokens or training.warm_up_tokens,
    }


def in_proportion(value: int, recipe: int, scaled: int | None) -> int:
    """What a scale makes of a setting that may not be the recipe's: the same share of it at every
    scale, at least 1. `scaled` is what the scale makes of the recipe's; None leaves the value as it
    is."""
    return value if scaled is None else max(1, round(scaled * value / recipe))


def scaled_width(scale: TransformerScale, width: int) -> int:
    """Even, as rotary positions turn pairs."""
    return max(2, 2 * round(width * scale.width / 2))


def scaled_rank(rank: int, width: int, narrow: int) -> int:
    """The rank of a head on the narrow model: the same share of its width, at least 1."""
    return max(1, round(rank * narrow / width))
