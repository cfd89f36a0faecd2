"""Scales: a study is written once, at paper scale, and every config is mapped down from there.

The resolved config is what a trial is identified by, so trials of two scales never mix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from search_spaces.experiment_scales import shrink
from trainables.config import (
    AnyConfig,
    AveragingConfig,
    CorpusConfig,
    EtAsgdConfig,
    EvaluationConfig,
    MixtureConfig,
    NtAsgdConfig,
    OutputLayerConfig,
    TrialConfig,
    TrueRankConfig,
    is_generated,
)


@dataclass(frozen=True, kw_only=True)
class Scale:
    """How a scale shrinks a config. None leaves a value as it is at paper scale."""

    name: str
    summary: str
    """What it is for, for `--help` and the report."""
    width: float = 1.0
    """Factor on every width, and on both activation regularisers: these are means over the width, so that in a
    narrow layer the same coefficient would weigh more on each unit."""
    dropout: float = 1.0
    """Factor on every dropout rate and on noise: a model that cannot overfit needs less."""
    learning_rate: float = 1.0
    batch_size: int | None = None
    bptt: int | None = None
    epochs: int | None = None
    generated_epochs: int | None = None
    """`epochs` on a generated language, of which a model learns nothing in the first passes but how often words are."""
    averaged_share: float | None = None
    """Share of the epochs for which ET-ASGD averages: 0.8 in the papers, too much of a short run."""
    epoch_tokens: int | None = None
    vocabulary_limit: int | None = None
    valid_tokens: int | None = None
    test_tokens: int | None = None


SCALES = {
    scale.name: scale
    for scale in (
        Scale(
            name="smoke",
            summary="a few trials of the study, seconds: does everything work?",
            width=0.03,
            dropout=0.25,
            learning_rate=0.3,
            batch_size=10,
            bptt=20,
            epochs=2,
            averaged_share=0.5,
            epoch_tokens=4_000,
            vocabulary_limit=300,
            valid_tokens=2_000,
            test_tokens=2_000,
        ),
        Scale(
            name="quick",
            summary="the whole study with tiny models and 2,000 words, minutes on two cores",
            width=0.06,
            dropout=0.25,
            learning_rate=0.3,
            batch_size=10,
            bptt=20,
            epochs=5,
            generated_epochs=30,
            averaged_share=0.4,
            epoch_tokens=80_000,
            vocabulary_limit=2_000,
            valid_tokens=20_000,
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


def apply_scale(scale: Scale, config: AnyConfig) -> AnyConfig:
    """The config at this scale; at paper scale, the config itself."""
    if isinstance(config, TrialConfig):
        return _language_model(scale, config)
    if isinstance(config, TrueRankConfig):
        return config.model_copy(update={"evaluation": _evaluation(scale, config.evaluation)})
    return shrink(scale.name, config)


def _language_model(scale: Scale, config: TrialConfig) -> TrialConfig:
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
    epochs = (scale.generated_epochs if is_generated(config.corpus.name) else None) or scale.epochs or training.epochs
    return config.model_copy(
        update={
            "corpus": _corpus(scale, config.corpus),
            "model": model.model_copy(
                update={name: max(2, round(getattr(model, name) * scale.width)) for name in widths}
                | {name: getattr(model, name) * scale.dropout for name in rates}
            ),
            "output_layer": _output_layer(config.output_layer, scale),
            "training": training.model_copy(
                update={name: getattr(training, name) * scale.width for name in regularisers}
                | {
                    "learning_rate": training.learning_rate * scale.learning_rate,
                    "batch_size": min(training.batch_size, scale.batch_size or training.batch_size),
                    "bptt": scale.bptt or training.bptt,
                    "epochs": epochs,
                    "epoch_tokens": scale.epoch_tokens or training.epoch_tokens,
                    "averaging": _averaging(training.averaging, scale, epochs),
                }
            ),
            "evaluation": _evaluation(scale, config.evaluation),
        }
    )


def _corpus(scale: Scale, corpus: CorpusConfig) -> CorpusConfig:
    """With fewer words, unless it is a generated language: what is known of it is known of the whole vocabulary."""
    if is_generated(corpus.name):
        return corpus
    return corpus.model_copy(update={"vocabulary_limit": scale.vocabulary_limit or corpus.vocabulary_limit})


def _evaluation(scale: Scale, evaluation: EvaluationConfig) -> EvaluationConfig:
    return evaluation.model_copy(
        update={
            "valid_tokens": scale.valid_tokens or evaluation.valid_tokens,
            "test_tokens": scale.test_tokens or evaluation.test_tokens,
        }
    )


def smoke_corner(trials: Sequence[AnyConfig]) -> list[AnyConfig]:
    """The four trials in which every part of a study shows: first and last of a grid's first and last row, about."""
    if len(trials) <= 4:
        return list(trials)
    last = len(trials) - 1
    return [trials[index] for index in sorted({0, last // 3, 2 * last // 3, last})]


def _output_layer(layer: OutputLayerConfig, scale: Scale) -> OutputLayerConfig:
    if isinstance(layer, MixtureConfig):
        return layer.model_copy(update={"latent_dropout": layer.latent_dropout * scale.dropout})
    return layer


def _averaging(averaging: AveragingConfig, scale: Scale, epochs: int) -> AveragingConfig:
    if scale.averaged_share is None:
        return averaging
    match averaging:
        case EtAsgdConfig():
            return EtAsgdConfig(switch_epoch=max(1, epochs - round(scale.averaged_share * epochs)))
        case NtAsgdConfig(nonmonotone_interval=n):
            return NtAsgdConfig(nonmonotone_interval=min(n, max(1, epochs // 5)))
