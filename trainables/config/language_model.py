"""Config of an AWD-LSTM trial: everything that can change a result.

Imports neither torch nor numpy, so that a plan takes milliseconds.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from trainables.config.frozen import Frozen, Identified, NonNegative, Rate
from trainables.config.output_layer import CustomConfig, MixtureConfig, OutputLayerConfig

MIN_STREAM = 3
"""Minimum tokens of each parallel stream: two to read, and one more to predict."""


class CorpusConfig(Frozen):
    """A corpus and its vocabulary limit."""

    name: str
    """`pydocs`, `markov`, `markov-20`, `spam-1000`, `ptb`, `wikitext-2`, or a folder with
    train.txt, valid.txt and test.txt."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """See `corpus_sha256`."""
    vocabulary_limit: Annotated[int, Field(ge=3)] | None = None
    """Types to keep, most frequent in train first; the rest become `<unk>`. None: all."""


def require_rank_within(rank: int | None, width: int) -> None:
    """Raise ValueError if the head's rank exceeds the width: it would restrict nothing."""
    if rank is not None and rank > width:
        raise ValueError(f"model.head_rank must be at most the width, {width}; got {rank}")


class LanguageModelConfig(Frozen):
    """AWD-LSTM (Merity et al. 2018): layers d -> hidden -> hidden -> d', tied output weights."""

    embedding_width: PositiveInt = 400
    """d: width of word embeddings and tied output weights."""
    hidden_width: PositiveInt = 1150
    context_width: PositiveInt = 400
    """d': width of the last LSTM layer's output h3."""
    dropout_embedding_matrix: Rate = 0.1
    """Word dropout: whole rows of the embedding matrix, rescaled."""
    dropout_embedding: Rate = 0.4
    """Locked dropout on the embedding output e_t."""
    dropout_hidden: Rate = 0.3
    """Locked dropout on h1 and h2."""
    dropout_output: Rate = 0.4
    """Locked dropout on h3."""
    dropconnect: Rate = 0.5
    """On every layer's hidden-to-hidden weights, one mask per batch."""
    embedding_noise: NonNegative = 0.0
    """Standard deviation of Gaussian noise on e_t in training (fair-capacity study)."""
    start: Literal["published", "scaled"] = "published"
    """Initial weights: as published, or rescaled for narrow models
    (`trainables.training.start`)."""
    head_rank: PositiveInt | None = None
    """r: output weights are A B (V x r times r x d), not the embedding. None: tied, as in the
    papers."""

    @model_validator(mode="after")
    def _check_rank(self) -> Self:
        require_rank_within(self.head_rank, self.embedding_width)
        return self

    @property
    def layer_widths(self) -> tuple[tuple[int, int], ...]:
        """Return each LSTM layer's widths: (input, output)."""
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
    """SGD or Adam with a switch to averaging; windows of random length."""

    batch_size: PositiveInt = 20
    bptt: PositiveInt = 70
    learning_rate: PositiveFloat = 20.0
    """Rate for windows of `bptt` tokens; a window of T tokens uses learning_rate * T / bptt."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """Plain SGD, as in the papers, or Adam (Kingma and Ba 2015) with decay rates 0.9 and 0.999."""
    warm_up_tokens: NonNegativeInt = 0
    """Train tokens over which the learning rate rises from 0."""
    weight_decay: NonNegative = 1.2e-6
    gradient_clip_norm: PositiveFloat = 0.25
    activation_regularisation: NonNegative = 2.0
    """alpha, times mean(h3_dropped^2)."""
    temporal_activation_regularisation: NonNegative = 1.0
    """beta, times mean((h3_{t+1} - h3_t)^2) of the undropped h3."""
    averaging: AveragingConfig = EtAsgdConfig()
    epochs: PositiveInt = 1000
    epoch_tokens: PositiveInt | None = None
    """Train tokens per epoch; the next epoch continues in the text. None: the whole text, as in the
    papers."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """Rounding of matrix factors in training; weights, sums and measurements are float32. On a GPU,
    tf32 (10 bits of mantissa) and bf16 (7) are faster. On a CPU, tf32 is float32, and bf16 affects
    only the output layer."""


class EvaluationConfig(Frozen):
    """Protocol of validation and test, and amount of text."""

    valid_batch_size: PositiveInt = 10
    test_batch_size: PositiveInt = 1
    window: PositiveInt = 70
    valid_tokens: PositiveInt | None = None
    """Validation tokens, from the text's start; None: all."""
    test_tokens: PositiveInt | None = None
    """Test tokens, from the text's start; None: all."""
    rank_contexts: PositiveInt | None = None
    """Rows of the log-P matrix: test contexts, from the text's start; None: all."""
    epoch_rank_contexts: PositiveInt | None = None
    """Validation contexts, from the text's start, for ranks after every epoch; None: no ranks."""


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
        """Return a key shared by trials of similar cost."""
        return self.output_layer.name
