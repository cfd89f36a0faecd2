"""The complete description of one trial, and its identity.

A trial is its content: `TrialConfig` writes out everything that can change a result (every default, the seed, the
corpus' own SHA-256, a schema version), and `trial_id` is the SHA-256 of its canonical JSON. What cannot change a result
(device, threads, folders) is no part of it. Imports neither torch nor numpy: a plan is made in milliseconds.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, PositiveFloat, PositiveInt, field_validator, model_validator

SCHEMA_VERSION: Literal[1] = 1
MIN_STREAM = 3
"""Tokens that each of a batch's parallel streams needs: two to read, and one more to predict."""

Rate = Annotated[float, Field(ge=0.0, lt=1.0)]
NonNegative = Annotated[float, Field(ge=0.0)]


class Frozen(BaseModel):
    """Base of all configs: immutable, no unknown keys, no NaN or infinity, one spelling of zero."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:  # noqa: ARG002
        """A copy with fields replaced, validated like any other config (pydantic's own would take anything)."""
        return type(self).model_validate({**dict(self), **(update or {})})

    @field_validator("*", mode="after")
    @classmethod
    def _one_zero(cls, value: Any) -> Any:
        return 0.0 if isinstance(value, float) and value == 0.0 else value


class CorpusConfig(Frozen):
    """Which text, and how much of its vocabulary."""

    name: str
    """`pydocs`, `ptb`, `wikitext-2`, or the name of a folder with train.txt, valid.txt and test.txt."""
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256 of the corpus' content (see `trainables.corpora.identity`)."""
    vocabulary_limit: Annotated[int, Field(ge=3)] | None = None
    """Keep this many types, the most frequent ones of the train split; the rest become `<unk>`. None keeps all."""


class LanguageModelConfig(Frozen):
    """AWD-LSTM (Merity et al. 2018): three LSTM layers d -> hidden -> hidden -> d', output weights tied."""

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

    @property
    def layer_widths(self) -> tuple[tuple[int, int], ...]:
        """Input and output width of each LSTM layer, the first one first."""
        return tuple(pairwise((self.embedding_width, self.hidden_width, self.hidden_width, self.context_width)))


class SoftmaxConfig(Frozen):
    """log_softmax(x)."""

    name: Literal["softmax"] = "softmax"


class SigSoftmaxConfig(Frozen):
    """log_softmax(2x - ln(1 + e^x)) (Kanai et al. 2018)."""

    name: Literal["sigsoftmax"] = "sigsoftmax"


class GssConfig(Frozen):
    """Generalized SigSoftmax: log_softmax(k(x - c) + c - (k - 1) softplus(x - c)) (AAAI 2021, eqs. 3 and 5)."""

    name: Literal["gss"] = "gss"
    c: float
    k: PositiveFloat


OutputLayerConfig = Annotated[SoftmaxConfig | SigSoftmaxConfig | GssConfig, Field(discriminator="name")]


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
    """SGD with a switch to averaged SGD, truncated back-propagation through time of random length."""

    batch_size: PositiveInt = 20
    bptt: PositiveInt = 70
    learning_rate: PositiveFloat = 20.0
    """Of a step of `bptt` tokens; a step of T tokens uses learning_rate * T / bptt."""
    weight_decay: NonNegative = 1.2e-6
    gradient_clip_norm: PositiveFloat = 0.25
    activation_regularisation: NonNegative = 2.0
    """alpha, times mean(h3_dropped^2)."""
    temporal_activation_regularisation: NonNegative = 1.0
    """beta, times mean((h3_{t+1} - h3_t)^2) of the undropped h3."""
    averaging: AveragingConfig = EtAsgdConfig()
    epochs: PositiveInt = 1000
    epoch_tokens: PositiveInt | None = None
    """Train tokens between two validations. None: one whole pass, as in the papers. With a number, an epoch ends
    after so many tokens and the next one goes on from the same place of the stream."""


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


class TrialConfig(Frozen):
    """Everything that decides the outcome of one language-model trial."""

    schema_version: Literal[1] = SCHEMA_VERSION
    kind: Literal["language_model"] = "language_model"
    seed: Annotated[int, Field(ge=0, lt=2**63)]
    corpus: CorpusConfig
    model: LanguageModelConfig = LanguageModelConfig()
    output_layer: OutputLayerConfig
    training: TrainingConfig = TrainingConfig()
    evaluation: EvaluationConfig = EvaluationConfig()

    @model_validator(mode="after")
    def _tied_widths(self) -> Self:
        model, layer = self.model, self.output_layer.name
        if model.context_width != model.embedding_width:
            raise ValueError(
                f"{layer} ties its weights to the embedding, so model.context_width must equal model.embedding_width; "
                f"got {model.context_width} and {model.embedding_width}"
            )
        return self

    def canonical_json(self) -> str:
        """The config as JSON with every default written out, keys sorted, no white space."""
        return json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"), allow_nan=False)

    @property
    def trial_id(self) -> str:
        """SHA-256 of the canonical JSON, as 64 hexadecimal digits."""
        return hashlib.sha256(self.canonical_json().encode()).hexdigest()
