"""The complete description of one trial of a Transformer, and its identity: a kind of its own
beside AWD-LSTM's."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from trainables.config.frozen import Frozen, Identified, NonNegative, Rate
from trainables.config.language_model import CorpusConfig, EvaluationConfig, require_rank_within
from trainables.config.output_layer import OutputLayerConfig

FEED_FORWARD_STEP = 8
"""Widths of feed-forward layers are multiples of it."""


class TransformerConfig(Frozen):
    """Decoder-only and pre-norm: RMSNorm, rotary positions, causal attention, SwiGLU feed-forward
    layers."""

    width: PositiveInt = 512
    """d: of the embeddings, of every layer's input and output, and of the context vectors."""
    layers: PositiveInt = 8
    heads: PositiveInt = 8
    dropout: Rate = 0.1
    """On the embedding output and on what attention and feed-forward layers add to it."""
    head: Literal["tied", "untied"] = "tied"
    """Whether the output weights are the embedding matrix, or a matrix of their own."""
    head_rank: PositiveInt | None = None
    """r: the untied output weights are A B, V x r times r x d. None: one V x d matrix."""

    @property
    def embedding_width(self) -> int:
        """As AWD-LSTM's."""
        return self.width

    @property
    def context_width(self) -> int:
        """As AWD-LSTM's."""
        return self.width

    @property
    def feed_forward_width(self) -> int:
        """Of SwiGLU, whose three matrices then hold about 8 d^2 numbers, as two of width 4 d
        would."""
        return FEED_FORWARD_STEP * max(1, round(8 * self.width / 3 / FEED_FORWARD_STEP))

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.width % (2 * self.heads):
            raise ValueError(
                "heads share the width evenly, and rotary positions turn pairs, so model.width "
                f"must be a multiple of 2 * model.heads; got {self.width} and {self.heads}"
            )
        if self.head_rank is not None and self.head != "untied":
            raise ValueError(
                f"model.head_rank is for model.head=untied; got {self.head_rank} with {self.head!r}"
            )
        require_rank_within(self.head_rank, self.width)
        return self


class TransformerTrainingConfig(Frozen):
    """AdamW (Loshchilov and Hutter 2019) with a linear warm-up and a cosine down to a share of the
    peak."""

    batch_size: PositiveInt = 32
    """Windows a step."""
    window: PositiveInt = 256
    """Context: tokens of a window, each predicted from those before it in the window."""
    learning_rate: PositiveFloat = 0.001
    """At the end of the warm-up."""
    final_rate_share: Rate = 0.1
    """Of the learning rate, at the last step."""
    warm_up_tokens: NonNegativeInt = 1_000_000
    beta1: Rate = 0.9
    beta2: Rate = 0.95
    weight_decay: NonNegative = 0.1
    """Decoupled, of matrices alone: gains, biases and what a function of the logits learns have
    none."""
    gradient_clip_norm: PositiveFloat = 1.0
    epochs: PositiveInt = 20
    epoch_tokens: PositiveInt | None = None
    """Train tokens between two validations, as in `TrainingConfig`."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """As in `TrainingConfig`."""


class TransformerTrialConfig(Identified):
    """Everything that decides the outcome of one Transformer trial."""

    schema_version: Literal[1] = 1
    kind: Literal["transformer"] = "transformer"
    corpus: CorpusConfig
    model: TransformerConfig = TransformerConfig()
    output_layer: OutputLayerConfig
    training: TransformerTrainingConfig = TransformerTrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @property
    def family(self) -> str:
        """What trials of about the same cost have in common."""
        return f"transformer {self.output_layer.name}"
