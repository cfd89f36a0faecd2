"""How many parameters a config's model has, by arithmetic: a plan says so without building a model."""

from __future__ import annotations

from trainables.config import TrialConfig


def parameter_count(config: TrialConfig, vocabulary_size: int) -> int:
    """Trainable numbers: embedding (shared with the output), output bias, three LSTM layers of two biases each."""
    model = config.model
    recurrent = sum(4 * out * (into + out + 2) for into, out in model.layer_widths)
    return vocabulary_size * (model.embedding_width + 1) + recurrent


def in_millions(parameters: int) -> str:
    """Two decimals of a million, cut off and not rounded: so the paper prints them (33,556,078 is its 33.55)."""
    return f"{parameters // 10_000 / 100:.2f}"
