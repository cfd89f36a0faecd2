"""Config of a Transformer trial."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import (
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from trainables.config.frozen import Frozen, Identified, Rate
from trainables.config.language_model import CorpusConfig, EvaluationConfig, require_rank_within
from trainables.config.output_layer import OutputLayerConfig

FEED_FORWARD_STEP = 8


class TransformerConfig(Frozen):
    """Decoder-only Transformer with pre-norm RMSNorm, rotary positions and SwiGLU."""

    width: PositiveInt = 512
    layers: PositiveInt = 8
    heads: PositiveInt = 8
    dropout: Rate = 0.1
    """Rate of dropout on embeddings, attention outputs and feed-forward outputs."""
    head: Literal["tied", "untied"] = "tied"
    """`tied` uses the embedding as output weights, `untied` a separate matrix."""
    head_rank: PositiveInt | None = None
    """Rank of untied output weights, stored as two factors. None stores one matrix."""

    @property
    def embedding_width(self) -> int:
        """Return `width`."""
        return self.width

    @property
    def context_width(self) -> int:
        """Return `width`."""
        return self.width

    @property
    def feed_forward_width(self) -> int:
        """Return the hidden width of SwiGLU.

        Its three matrices have about as many entries as a feed-forward layer of width 4 d.
        """
        return FEED_FORWARD_STEP * max(1, round(8 * self.width / 3 / FEED_FORWARD_STEP))

    @model_validator(mode="after")
    def _check_widths(self) -> Self:
        if self.width % (2 * self.heads):
            raise ValueError(
                "model.width must be a multiple of 2 * model.heads, because rotary positions "
                f"rotate pairs of numbers; got {self.width} and {self.heads}"
            )
        if self.head_rank is not None and self.head != "untied":
            raise ValueError(
                f"model.head_rank needs model.head=untied; got {self.head_rank} with {self.head!r}"
            )
        require_rank_within(self.head_rank, self.width)
        return self


class TransformerTrainingConfig(Frozen):
    """AdamW (Loshchilov and Hutter 2019) with linear warm-up and cosine decay."""

    batch_size: PositiveInt = 32
    """Windows per step."""
    window: PositiveInt = 256
    """Context length in tokens."""
    learning_rate: PositiveFloat = 0.001
    """Peak rate, after the warm-up."""
    final_rate_share: Rate = 0.1
    """Learning rate of the last step, relative to the peak."""
    warm_up_tokens: NonNegativeInt = 1_000_000
    beta1: Rate = 0.9
    beta2: Rate = 0.95
    weight_decay: NonNegativeFloat = 0.1
    """Decoupled weight decay of matrices. Gains, biases and learned functions of logits have
    none."""
    gradient_clip_norm: PositiveFloat = 1.0
    epochs: PositiveInt = 20
    epoch_tokens: PositiveInt | None = None
    """See `TrainingConfig`."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """See `TrainingConfig`."""


class TransformerTrialConfig(Identified):
    """Config of a Transformer trial."""

    schema_version: Literal[1] = 1
    kind: Literal["transformer"] = "transformer"
    corpus: CorpusConfig
    model: TransformerConfig = TransformerConfig()
    output_layer: OutputLayerConfig
    training: TransformerTrainingConfig = TransformerTrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @property
    def family(self) -> str:
        """Return a group name. Measured times correct the time estimates of the same group."""
        return f"transformer {self.output_layer.name}"
