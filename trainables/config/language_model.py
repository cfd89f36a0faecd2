"""The complete description of one trial, and its identity.

A trial is its content: `TrialConfig` writes out everything that can change a result (every default,
the seed, the corpus' own SHA-256, a schema version), and `trial_id` is the SHA-256 of its canonical
JSON. What cannot change a result (device, threads, folders) is no part of it. Imports neither torch
nor numpy: a plan is made in milliseconds."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Literal, Self

from pydantic import Field, NonNegativeInt, PositiveFloat, PositiveInt, model_validator

from trainables.config.frozen import Frozen, Identified, NonNegative, Rate
from trainables.config.output_layer import CustomConfig, MixtureConfig, OutputLayerConfig

MIN_STREAM = 3
"""Tokens that each of a batch's parallel streams needs: two to read, and one more to predict."""


class CorpusConfig(Frozen):
    """Which text, and how much of its vocabulary."""

    name: str
    """`pydocs`, `markov`, `markov-20`, `spam-1000`, `ptb`, `wikitext-2`, or the name of a folder
    with train.txt, valid.txt and test.txt."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256 of the corpus' content (see `trainables.corpora.published`)."""
    vocabulary_limit: Annotated[int, Field(ge=3)] | None = None
    """Keep this many types, the most frequent ones of the train split; the rest become `<unk>`.
    None keeps all."""


def require_rank_within(rank: int | None, width: int) -> None:
    """Raise ValueError for a rank of the head above its width, which would restrict nothing."""
    if rank is not None and rank > width:
        raise ValueError(
            f"model.head_rank is at most the width, here {width}; got {rank}: type a lower one"
        )


class LanguageModelConfig(Frozen):
    """AWD-LSTM (Merity et al. 2018): three LSTM layers d -> hidden -> hidden -> d', output weights
    tied."""

    embedding_width: PositiveInt = 400
    """d: width of the word embeddings, and of the tied output weights."""
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
    """DropConnect on every layer's hidden-to-hidden weights, one mask a batch."""
    embedding_noise: NonNegative = 0.0
    """Standard deviation of Gaussian noise on the embedding output e_t in training (fair-capacity
    study)."""
    start: Literal["published", "scaled"] = "published"
    """Weights before the first step: as the papers draw them, or rescaled so that a narrow model
    learns within minutes (see `trainables.training.start`)."""
    head_rank: PositiveInt | None = None
    """r: the output weights are A B, V x r times r x d, and no longer the embedding's. None: tied,
    as in the papers."""

    @model_validator(mode="after")
    def _rank_within(self) -> Self:
        require_rank_within(self.head_rank, self.embedding_width)
        return self

    @property
    def layer_widths(self) -> tuple[tuple[int, int], ...]:
        """Input and output width of each LSTM layer, the first one first."""
        return tuple(
            pairwise(
                (self.embedding_width, self.hidden_width, self.hidden_width, self.context_width)
            )
        )


class EtAsgdConfig(Frozen):
    """Epoch-triggered averaged SGD: switch after a fixed epoch."""

    name: Literal["et_asgd"] = "et_asgd"
    switch_epoch: PositiveInt = 200


class NtAsgdConfig(Frozen):
    """Non-monotonically triggered averaged SGD: switch once the validation loss stops improving."""

    name: Literal["nt_asgd"] = "nt_asgd"
    nonmonotone_interval: PositiveInt = 5


AveragingConfig = Annotated[EtAsgdConfig | NtAsgdConfig, Field(discriminator="name")]


class TrainingConfig(Frozen):
    """SGD or Adam with a switch to averaging, truncated back-propagation through time of random
    length."""

    batch_size: PositiveInt = 20
    bptt: PositiveInt = 70
    learning_rate: PositiveFloat = 20.0
    """Of a step of `bptt` tokens; a step of T tokens uses learning_rate * T / bptt."""
    optimizer: Literal["sgd", "adam"] = "sgd"
    """Plain SGD, as in the papers, or Adam (Kingma and Ba 2015) with its usual decay rates, 0.9 and
    0.999. Averaging is of the weights, whatever moves them."""
    warm_up_tokens: NonNegativeInt = 0
    """The learning rate rises from 0 over so many train tokens."""
    weight_decay: NonNegative = 1.2e-6
    gradient_clip_norm: PositiveFloat = 0.25
    activation_regularisation: NonNegative = 2.0
    """alpha, times mean(h3_dropped^2)."""
    temporal_activation_regularisation: NonNegative = 1.0
    """beta, times mean((h3_{t+1} - h3_t)^2) of the undropped h3."""
    averaging: AveragingConfig = EtAsgdConfig()
    epochs: PositiveInt = 1000
    epoch_tokens: PositiveInt | None = None
    """Train tokens between two validations. None: one whole pass, as in the papers. With a number,
    an epoch ends after so many tokens and the next one goes on from the same place of the
    stream."""
    precision: Literal["float32", "tf32", "bf16"] = "float32"
    """Of the factors of matrix products in training: both others are faster on a GPU, which tf32
    rounds to 10 bits of mantissa, and bf16 to 7. On a CPU tf32 is float32, and bf16 for the output
    layer alone. Weights, sums and measurements are float32."""


class EvaluationConfig(Frozen):
    """How validation and test perplexity are taken, and on how much text."""

    valid_batch_size: PositiveInt = 10
    test_batch_size: PositiveInt = 1
    window: PositiveInt = 70
    valid_tokens: PositiveInt | None = None
    """Validate on the first so many tokens; None: on all."""
    test_tokens: PositiveInt | None = None
    """Test on the first so many tokens; None: on all."""
    rank_contexts: PositiveInt | None = None
    """Rows of the log-P matrix: the first so many test contexts; None: all of the test text."""
    epoch_rank_contexts: PositiveInt | None = None
    """Take ranks at the end of every epoch, over the first so many validation contexts; None:
    not."""


class TrialConfig(Identified):
    """Everything that decides the outcome of one language-model trial."""

    schema_version: Literal[2] = 2
    kind: Literal["language_model"] = "language_model"
    corpus: CorpusConfig
    model: LanguageModelConfig = LanguageModelConfig()
    output_layer: OutputLayerConfig
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _tied_widths(self) -> Self:
        model, layer = self.model, self.output_layer
        # Mixtures map the context vector to the embedding's width themselves, and so may a user's
        # own layer.
        projects = isinstance(layer, MixtureConfig | CustomConfig)
        if model.context_width != model.embedding_width and not projects:
            raise ValueError(
                f"{layer.name} ties its weights to the embedding, so model.context_width must "
                f"equal "
                f"model.embedding_width; got {model.context_width} and {model.embedding_width}"
            )
        return self

    @property
    def family(self) -> str:
        """What trials of about the same cost have in common."""
        return self.output_layer.name
