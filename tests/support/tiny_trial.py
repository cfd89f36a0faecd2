from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np

from trainables.config import (
    AveragingConfig,
    CorpusConfig,
    EtAsgdConfig,
    EvaluationConfig,
    GssConfig,
    LanguageModelConfig,
    OutputLayerConfig,
    TrainingConfig,
    TrialConfig,
)
from trainables.corpora import Corpus, CorpusIdentity
from trainables.language_model import LanguageModel
from trainables.measurements import context_vectors, log_probability_matrix
from trainables.runtime import Runtime
from trainables.training import Trainer

VOCABULARY = 40
IDENTITY = CorpusIdentity(
    name="tiny",
    sha256="0" * 64,
    train_tokens=3000,
    valid_tokens=600,
    test_tokens=400,
    vocabulary_size=VOCABULARY,
)


def corpus(train_tokens: int = 3000) -> Corpus:
    numbers = np.random.default_rng(0)

    def text(length: int) -> np.ndarray:
        jumps = numbers.integers(VOCABULARY, size=length) * (numbers.random(length) < 0.3)
        return (np.arange(length) * 7 + np.cumsum(jumps)) % VOCABULARY

    words = tuple(f"w{i}" for i in range(VOCABULARY))
    return Corpus(
        name="tiny", train=text(train_tokens), valid=text(600), test=text(400), vocabulary=words
    )


def trial(
    *,
    output_layer: OutputLayerConfig | None = None,
    averaging: AveragingConfig | None = None,
    dropout: bool = True,
    epoch_rank_contexts: int | None = None,
    head_rank: int | None = None,
    **training: Any,
) -> TrialConfig:
    off: dict[str, Any] = {} if dropout else dict.fromkeys(
        ("dropout_embedding_matrix", "dropout_embedding", "dropout_hidden", "dropout_output",
         "dropconnect"), 0.0
    )  # fmt: skip
    settings = {"batch_size": 4, "bptt": 12, "learning_rate": 5.0, "epochs": 6} | training
    return TrialConfig(
        seed=7,
        corpus=CorpusConfig(name="tiny", sha256="0" * 64),
        model=LanguageModelConfig(
            embedding_width=8, hidden_width=12, context_width=8, head_rank=head_rank, **off
        ),
        output_layer=output_layer or GssConfig(c=-1.5, k=2.5),
        training=TrainingConfig(averaging=averaging or EtAsgdConfig(switch_epoch=3), **settings),
        evaluation=EvaluationConfig(epoch_rank_contexts=epoch_rank_contexts),
    )


def train(trainer: Trainer) -> None:
    while len(trainer.progress.epochs) < trainer.config.training.epochs:
        trainer.step()
        if trainer.ends_epoch:
            trainer.end_epoch()


def trained(layer: OutputLayerConfig, epochs: int = 2) -> LanguageModel:
    return copy.deepcopy(_trained(layer, epochs))


@functools.cache
def _trained(layer: OutputLayerConfig, epochs: int) -> LanguageModel:
    config = trial(
        output_layer=layer, epochs=epochs, learning_rate=20.0, activation_regularisation=0.0
    )
    trainer = Trainer(config, corpus(), Runtime())
    train(trainer)
    return trainer.model.eval()


def spread(layer: OutputLayerConfig) -> LanguageModel:
    """Return an untrained model with embeddings so large that contexts' probabilities differ."""
    model = Trainer(trial(output_layer=layer), corpus(), Runtime()).model.eval()
    model.embedding_VD.data *= 150
    return model


def log_p_matrix(model: LanguageModel, tokens: np.ndarray, window: int = 70) -> np.ndarray:
    """Return log P in float64, a row per token."""
    contexts = context_vectors(model, tokens, window=window)
    return log_probability_matrix(model, contexts).astype(np.float64)
