"""Config of an AWD-LSTM trial.

The module does not import torch or numpy, so that a dry run takes milliseconds.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    model_validator,
)

from trainables.config.frozen import Frozen, Identified, Rate, Sha256
from trainables.config.output_layer import CustomConfig, MixtureConfig, OutputLayerConfig

MIN_STREAM = 3
"""Minimum number of tokens in each parallel stream of a batch: two inputs and one more target."""


class CorpusConfig(Frozen):
    """A corpus and its vocabulary limit."""

    name: str
    """`pydocs`, `markov`, `markov-20`, `spam-1000`, `ptb`, `wikitext-2`, or a folder with
    train.txt, valid.txt and test.txt."""
    sha256: Sha256
    """See `corpus_sha256`."""
    vocabulary_limit: Annotated[int, Field(ge=3)] | None = None
    """Number of types to keep, the most frequent in train. Others become `<unk>`. None keeps
    all."""


def require_rank_within(rank: int | None, width: int) -> None:
    """Raise ValueError if the head's rank exceeds the width, and so would restrict nothing."""
    if rank is not None and rank > width:
        raise ValueError(f"model.head_rank must be at most the width, {width}; got {rank}")


class LanguageModelConfig(Frozen):
    """AWD-LSTM (Merity et al. 2018) with three LSTM layers.

    Locked dropout (one mask per window) acts on embeddings and on each layer's outputs. The last
    layer has the rate `dropout_output`, the others `dropout_hidden`.
    """

    embedding_width: PositiveInt = 400
    hidden_width: PositiveInt = 1150
    context_width: PositiveInt = 400
    """Width of the last LSTM layer's outputs."""
    dropout_embedding_matrix: Rate = 0.1
    """Rate of word dropout, which zeroes rows of the embedding matrix and rescales the others."""
    dropout_embedding: Rate = 0.4
    dropout_hidden: Rate = 0.3
    dropout_output: Rate = 0.4
    dropconnect: Rate = 0.5
    """Dropout rate of hidden-to-hidden weights, with one mask per batch."""
    embedding_noise: NonNegativeFloat = 0.0
    """Standard deviation of Gaussian noise on embeddings in training."""
    start: Literal["published", "scaled"] = "published"
    """Initial weights: as published, or rescaled for narrow models
    (`trainables.training.start`)."""
    head_rank: PositiveInt | None = None
    """Rank of separate output weights, stored as two factors. None ties the output weights to the
    embedding."""

    @model_validator(mode="after")
    def _check_rank(self) -> Self:
        require_rank_within(self.head_rank, self.embedding_width)
        return self

    @property
    def layer_widths(self) -> tuple[tuple[int, int], ...]:
        """Return (input width, output width) of each LSTM layer."""
        return tuple(
            pairwise(
                (self.embedding_width, self.hidden_width, self.hidden_width, self.context_width)
            )
        )


class EtAsgdConfig(Frozen):
    """Averaged SGD that starts after a fixed epoch."""

    name: Literal["et_asgd"] = "et_asgd"
    switch_epoch: PositiveInt = 200


class NtAsgdConfig(Frozen):
    """Averaged SGD that starts once the validation loss stops improving."""

    name: Literal["nt_asgd"] = "nt_asgd"
    nonmonotone_interval: PositiveInt = 5


AveragingConfig = Annotated[EtAsgdConfig | NtAsgdConfig, Field(discriminator="name")]


class TrainingConfig(Frozen):
    """Settings of SGD or Adam, with windows of random length and averaging of weights."""

    batch_size: PositiveInt = 20
    bptt: PositiveInt = 70
    learning_rate: PositiveFloat = 20.0
    """Rate for windows of `bptt` tokens; a window of T tokens uses learning_rate * T / bptt."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """Plain SGD, as in the papers, or Adam (Kingma and Ba 2015) with decay rates 0.9 and 0.999."""
    warm_up_tokens: NonNegativeInt = 0
    """Train tokens over which the learning rate rises from 0."""
    weight_decay: NonNegativeFloat = 1.2e-6
    gradient_clip_norm: PositiveFloat = 0.25
    activation_regularisation: NonNegativeFloat = 2.0
    """Factor of the loss term mean(h^2), with the last layer's outputs h after dropout."""
    temporal_activation_regularisation: NonNegativeFloat = 1.0
    """Factor of the loss term mean((h_{t+1} - h_t)^2), with outputs h before dropout."""
    averaging: AveragingConfig = EtAsgdConfig()
    epochs: PositiveInt = 1000
    epoch_tokens: PositiveInt | None = None
    """Train tokens per epoch; the next epoch continues in the text. None means the whole text."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """Precision of the factors of matrix products in training. Weights, sums and measurements are
    always float32. On a CPU, tf32 means float32, and bf16 affects only the output layer."""


class EvaluationConfig(Frozen):
    """Settings of validation, test and measurements.

    Limits on tokens and contexts count from the start of the text.
    """

    valid_batch_size: PositiveInt = 10
    test_batch_size: PositiveInt = 1
    window: PositiveInt = 70
    valid_tokens: PositiveInt | None = None
    test_tokens: PositiveInt | None = None
    rank_contexts: PositiveInt | None = None
    """Maximum number of test contexts, the rows of the log-P matrix."""
    epoch_rank_contexts: PositiveInt | None = None
    """Number of validation contexts at which every epoch's ranks are computed. None computes no
    ranks."""


class TrialConfig(Identified):
    """Config of an AWD-LSTM trial."""

    schema_version: Literal[2] = 2
    kind: Literal["language_model"] = "language_model"
    corpus: CorpusConfig
    model: LanguageModelConfig = LanguageModelConfig()
    output_layer: OutputLayerConfig
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _check_tied_widths(self) -> Self:
        model, layer = self.model, self.output_layer
        # Mixtures map the context vector to the embedding's width, and a user's own layer may.
        projects = isinstance(layer, MixtureConfig | CustomConfig)
        if model.context_width != model.embedding_width and not projects:
            raise ValueError(
                f"{layer.name} ties its weights to the embedding: model.context_width must equal "
                f"model.embedding_width; got {model.context_width} and {model.embedding_width}"
            )
        return self

    @property
    def family(self) -> str:
        """Return a group name. Measured times correct the time estimates of the same group."""
        return self.output_layer.name
