"""Scales, which shrink the configs of paper scale.

The scaled config identifies a trial, so trials of two scales never mix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from search_spaces.experiment_scales import shrink
from search_spaces.transformer import recipe_epochs
from search_spaces.transformer_scales import (
    TRANSFORMER_SCALES,
    in_proportion,
    scaled_rank,
    shrunk_model,
    shrunk_training,
)
from trainables.config import (
    AnyConfig,
    AveragingConfig,
    CorpusConfig,
    EtAsgdConfig,
    EvaluationConfig,
    LanguageTrialConfig,
    MixtureConfig,
    NtAsgdConfig,
    OutputLayerConfig,
    PlifConfig,
    TransformerTrialConfig,
    TrialConfig,
    TrueRankConfig,
    is_generated,
    markov_rank,
)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """Factors and limits that shrink a config. None keeps the value of paper scale.

    Fields such as `width` are for AWD-LSTMs; `TRANSFORMER_SCALES` has those of Transformers.
    """

    name: str
    summary: str
    width: float = 1.0
    """Factor on widths and activation regularisers. A regulariser is a mean over the width:
    unscaled, it would weigh more on each unit of a narrow layer."""
    dropout: float = 1.0
    """Factor on dropout rates and noise; small models overfit less."""
    optimizer: Literal["adam"] | None = None
    learning_rate: float = 1.0
    """Factor on the learning rate. The papers' 20 is for SGD; Adam needs a much lower rate."""
    warm_up_tokens: int | None = None
    start: Literal["scaled"] | None = None
    knots: int | None = None
    """Maximum number of knots of a piecewise linear function; each step visits all knots."""
    batch_size: int | None = None
    """One size for all output layers, so that they take equally many steps. The papers reduced it
    when memory was short."""
    bptt: int | None = None
    epochs: int | None = None
    generated_epochs: int | None = None
    """Replaces `epochs` on a generated language, whose first epochs teach only word frequencies."""
    averaged_share: float | None = None
    """Share of epochs that ET-ASGD averages; the papers' 0.8 is too much for short runs."""
    epoch_tokens: int | None = None
    vocabulary_limit: int | None = None
    valid_tokens: int | None = None
    test_tokens: int | None = None
    test_batch_size: int | None = None
    """Parallel streams of test text. One stream would make matrix products of single rows."""
    rank_contexts: int | None = None
    """Test contexts in the log-P matrix. With 1,024 of 82,430, the Press rank is 1.7 times that of
    all contexts; models have nearly the same order (rho 0.96)."""
    epoch_rank_contexts: int | None = None


SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            name="smoke",
            summary="a few trials with tiny models, seconds: a check that everything works",
            width=0.03,
            dropout=0.1,
            optimizer="adam",
            learning_rate=0.001,
            warm_up_tokens=1_000,
            start="scaled",
            batch_size=10,
            bptt=20,
            knots=10_000,
            epochs=2,
            averaged_share=0.5,
            epoch_tokens=8_000,
            vocabulary_limit=300,
            valid_tokens=2_000,
            test_tokens=2_000,
            epoch_rank_contexts=512,
        ),
        Scale(
            name="quick",
            summary="tiny models and 2,000 words, minutes on two cores",
            width=0.06,
            dropout=0.1,
            optimizer="adam",
            learning_rate=0.001,
            warm_up_tokens=10_000,
            start="scaled",
            knots=100_000,
            batch_size=20,
            bptt=20,
            epochs=8,
            generated_epochs=30,
            averaged_share=0.4,
            epoch_tokens=16_000,
            vocabulary_limit=2_000,
            valid_tokens=5_000,
            test_tokens=40_000,
            test_batch_size=10,
            rank_contexts=1_024,
            epoch_rank_contexts=512,
        ),
        Scale(
            name="small",
            summary="half-size models on the full vocabulary, hours on one GPU",
            width=0.5,
            dropout=0.5,
            epochs=20,
            averaged_share=0.5,
        ),
        Scale(name="paper", summary="exactly the protocol of the papers"),
    )
}


FULL = Scale(name="full", summary="the study's own settings")
"""The scale of a study of a user's own code."""


def apply_scale(scale: Scale, config: AnyConfig) -> AnyConfig:
    """Return the config at this scale."""
    if isinstance(config, TrialConfig):
        return _awd_lstm(scale, config)
    if isinstance(config, TransformerTrialConfig):
        return _transformer(scale, config)
    if isinstance(config, TrueRankConfig):
        return config.model_copy(update={"evaluation": _evaluation(scale, config)})
    return shrink(scale.name, config)


def _awd_lstm(scale: Scale, config: TrialConfig) -> TrialConfig:
    model, training = config.model, config.training
    widths = ("embedding_width", "hidden_width", "context_width")
    rates = (
        "dropout_embedding_matrix",
        "dropout_embedding",
        "dropout_hidden",
        "dropout_output",
        "dropconnect",
        "embedding_noise",
    )
    regularisers = ("activation_regularisation", "temporal_activation_regularisation")
    sizes = {name: max(2, round(getattr(model, name) * scale.width)) for name in widths}
    rank = model.head_rank and scaled_rank(
        model.head_rank, model.embedding_width, sizes["embedding_width"]
    )
    epochs = _epochs(scale, config) or training.epochs
    return config.model_copy(
        update={
            "corpus": _corpus(scale, config.corpus),
            "model": model.model_copy(
                update={"start": scale.start or model.start, "head_rank": rank}
                | sizes
                | {name: getattr(model, name) * scale.dropout for name in rates}
            ),
            "output_layer": _output_layer(config.output_layer, scale),
            "training": training.model_copy(
                update={name: getattr(training, name) * scale.width for name in regularisers}
                | {
                    "optimizer": scale.optimizer or training.optimizer,
                    "warm_up_tokens": scale.warm_up_tokens or training.warm_up_tokens,
                    "learning_rate": training.learning_rate * scale.learning_rate,
                    "batch_size": scale.batch_size or training.batch_size,
                    "bptt": scale.bptt or training.bptt,
                    "epochs": epochs,
                    "epoch_tokens": scale.epoch_tokens or training.epoch_tokens,
                    "averaging": _averaging(training.averaging, scale, epochs),
                }
            ),
            "evaluation": _trained_evaluation(scale, config),
        }
    )


def _transformer(scale: Scale, config: TransformerTrialConfig) -> TransformerTrialConfig:
    sizes = TRANSFORMER_SCALES.get(scale.name)
    if sizes is None:
        return config
    model, training = config.model, config.training
    shrunk = shrunk_training(sizes, config)
    # A Transformer is evaluated on windows of its training's length, unless the study sets another.
    window = max(1, round(config.evaluation.window * shrunk["window"] / training.window))
    return config.model_copy(
        update={
            "corpus": _corpus(scale, config.corpus),
            "model": model.model_copy(
                update={**shrunk_model(sizes, model), "dropout": model.dropout * scale.dropout},
            ),
            "output_layer": _output_layer(config.output_layer, scale),
            "training": training.model_copy(
                update={
                    **shrunk,
                    "epochs": in_proportion(
                        training.epochs, recipe_epochs(config.corpus), _epochs(scale, config)
                    ),
                    "epoch_tokens": scale.epoch_tokens or training.epoch_tokens,
                }
            ),
            "evaluation": _trained_evaluation(scale, config).model_copy(update={"window": window}),
        }
    )


def _epochs(scale: Scale, config: LanguageTrialConfig) -> int | None:
    generated = scale.generated_epochs if is_generated(config.corpus.name) else None
    return generated or scale.epochs


def _corpus(scale: Scale, corpus: CorpusConfig) -> CorpusConfig:
    if is_generated(corpus.name):
        return corpus
    return corpus.model_copy(
        update={"vocabulary_limit": scale.vocabulary_limit or corpus.vocabulary_limit}
    )


def _trained_evaluation(scale: Scale, config: LanguageTrialConfig) -> EvaluationConfig:
    contexts = scale.epoch_rank_contexts or config.evaluation.epoch_rank_contexts
    return _evaluation(scale, config).model_copy(update={"epoch_rank_contexts": contexts})


def _evaluation(scale: Scale, config: LanguageTrialConfig | TrueRankConfig) -> EvaluationConfig:
    evaluation = config.evaluation
    # If the true rank is known, keep all contexts: a sample may miss some.
    rank_contexts = scale.rank_contexts if markov_rank(config.corpus.name) is None else None
    return evaluation.model_copy(
        update={
            "valid_tokens": scale.valid_tokens or evaluation.valid_tokens,
            "test_tokens": scale.test_tokens or evaluation.test_tokens,
            "test_batch_size": scale.test_batch_size or evaluation.test_batch_size,
            "rank_contexts": rank_contexts or evaluation.rank_contexts,
        }
    )


def smoke_corner(trials: Sequence[AnyConfig]) -> list[AnyConfig]:
    """Return at most four trials, spread over the list."""
    if len(trials) <= 4:
        return list(trials)
    last = len(trials) - 1
    return [trials[index] for index in sorted({0, last // 3, 2 * last // 3, last})]


def _output_layer(layer: OutputLayerConfig, scale: Scale) -> OutputLayerConfig:
    update: dict[str, float] = {}
    if isinstance(layer, MixtureConfig):
        update["latent_dropout"] = layer.latent_dropout * scale.dropout
    if isinstance(layer, PlifConfig) and scale.knots is not None:
        update["knots"] = min(layer.knots, scale.knots)
    return layer.model_copy(update=update)


def _averaging(averaging: AveragingConfig, scale: Scale, epochs: int) -> AveragingConfig:
    if scale.averaged_share is None:
        return averaging
    match averaging:
        case EtAsgdConfig():
            return EtAsgdConfig(switch_epoch=max(1, epochs - round(scale.averaged_share * epochs)))
        case NtAsgdConfig(nonmonotone_interval=n):
            return NtAsgdConfig(nonmonotone_interval=min(n, max(1, epochs // 5)))
