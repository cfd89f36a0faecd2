"""Scales of Transformer trials: a smaller size of the ladder, with shorter windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from search_spaces.transformer import BATCH_SIZE, ladder
from trainables.config import TransformerConfig, TransformerTrialConfig


@dataclass(frozen=True, kw_only=True)
class TransformerScale:
    """Factors and sizes that shrink a Transformer trial. None keeps the value of paper scale."""

    width: float
    """Factor on width and head rank; the ladder sets layers, heads and learning rate."""
    learning_rate: float = 1.0
    """Further factor on the ladder's learning rate: fewer steps need larger rates."""
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


def shrunk_model(scale: TransformerScale, model: TransformerConfig) -> dict[str, Any]:
    """Return the model's sizes at this scale.

    Layers and heads keep their ratio to those of the ladder.
    """
    lower_rung, rung = ladder(scaled_width(scale, model.width)), ladder(model.width)
    heads = max(1, round(model.heads * lower_rung.heads / rung.heads))
    rank = model.head_rank
    return {
        "width": lower_rung.width,
        "layers": max(1, round(model.layers * lower_rung.layers / rung.layers)),
        "heads": next(
            count for count in range(heads, 0, -1) if lower_rung.width % (2 * count) == 0
        ),
        "head_rank": rank and scaled_rank(rank, model.width, lower_rung.width),
    }


def shrunk_training(scale: TransformerScale, config: TransformerTrialConfig) -> dict[str, Any]:
    """Return the training's settings at this scale, without epochs and epoch_tokens."""
    training, width = config.training, config.model.width
    rate_factor = ladder(scaled_width(scale, width)).learning_rate / ladder(width).learning_rate
    return {
        "batch_size": in_proportion(training.batch_size, BATCH_SIZE, scale.batch_size),
        "window": scale.window or training.window,
        "learning_rate": training.learning_rate * rate_factor * scale.learning_rate,
        "warm_up_tokens": scale.warm_up_tokens or training.warm_up_tokens,
    }


def in_proportion(value: int, recipe: int, scaled: int | None) -> int:
    """Return `value` times `scaled` / `recipe`, at least 1; without `scaled`, `value` itself.

    `recipe` is the recipe's value at paper scale, `scaled` its value at this scale.
    """
    return value if scaled is None else max(1, round(scaled * value / recipe))


def scaled_width(scale: TransformerScale, width: int) -> int:
    """Return the scaled width, rounded to an even number because rotary positions rotate pairs."""
    return max(2, 2 * round(width * scale.width / 2))


def scaled_rank(rank: int, width: int, narrow_width: int) -> int:
    """Return a head's rank on the narrow model, in proportion to its width, at least 1."""
    return max(1, round(rank * narrow_width / width))
