"""The papers' trials on random text, and their operations per token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel
from torch import Tensor

from search_spaces.awd_lstm import awd_lstm
from search_spaces.models import output_layer
from search_spaces.transformer import transformer
from trainables.config import (
    CorpusConfig,
    LanguageTrialConfig,
    MixtureConfig,
    MocConfig,
    MonotoneNnConfig,
    OutputLayerConfig,
    SoftcapConfig,
    TransformerTrialConfig,
    TrialConfig,
)
from trainables.corpora import Corpus
from trainables.device import Precision
from trainables.runtime import Runtime
from trainables.training import Trainer

ConfigT = TypeVar("ConfigT", bound=BaseModel)
TrialT = TypeVar("TrialT", TrialConfig, TransformerTrialConfig)
Scale = Literal["paper", "tiny"]
Model = Literal["awd_lstm", "transformer"]
STACKED = (
    "gss",
    "softmax",
    "mos",
    "lms_plif",
    "sigsoftmax",
    "moc",
    "mos_plif",
    "lms_plif_frozen",
    "softcap",
)
"""Output layers that stacks can train; the first four are measured first."""
LAYERS = (*STACKED, "monotone_nn")
UNPUBLISHED: dict[str, OutputLayerConfig] = {
    "monotone_nn": MonotoneNnConfig(),
    "softcap": SoftcapConfig(cap=15.0),
}
CORPORA = {"ptb": (929_589, 82_430, 10_000), "wikitext-2": (2_088_628, 245_569, 33_278)}
"""Train tokens, test tokens and vocabulary size, by corpus."""
TINY_CORPUS = (2_000, 100, 40)
TINY: dict[str, dict[str, Any]] = {
    "model": {"embedding_width": 8, "hidden_width": 12, "context_width": 8},
    "training": {"batch_size": 4, "bptt": 12, "learning_rate": 5.0},
}
TINY_TRANSFORMER: dict[str, dict[str, Any]] = {
    "model": {"width": 8, "layers": 2, "heads": 2},
    "training": {"batch_size": 4, "window": 12, "learning_rate": 0.01, "warm_up_tokens": 500},
}
TINY_LAYER = {"knots": 21, "limit": 3.0, "mixtures": 2, "units": 5}


def layer_config(name: str, corpus: str, scale: Scale = "paper") -> OutputLayerConfig:
    """Return an output layer with the paper's settings, or a tiny one."""
    layer = UNPUBLISHED.get(name) or output_layer(name, corpus)
    return _update(
        layer,
        {
            key: value
            for key, value in TINY_LAYER.items()
            if scale == "tiny" and hasattr(layer, key)
        },
    )


def trial(
    corpus: str, layer: OutputLayerConfig, precision: str, scale: Scale, **training: Any
) -> TrialConfig:
    """Return an AWD-LSTM trial."""
    config = awd_lstm(CorpusConfig(name=corpus, sha256="0" * 64), layer)
    return _resize(config, TINY if scale == "tiny" else {}, precision, training)


def transformer_trial(
    corpus: str, layer: OutputLayerConfig, precision: str, scale: Scale, **training: Any
) -> TransformerTrialConfig:
    """Return a Transformer trial, with width 512 at paper scale."""
    config = transformer(CorpusConfig(name=corpus, sha256="0" * 64), layer)
    return _resize(config, TINY_TRANSFORMER if scale == "tiny" else {}, precision, training)


def _resize(
    config: TrialT, tiny_values: dict[str, dict[str, Any]], precision: str, training: dict[str, Any]
) -> TrialT:
    model = _update(config.model, tiny_values.get("model", {}))
    training_config = _update(
        config.training, tiny_values.get("training", {}) | {"precision": precision} | training
    )
    return _update(config, {"model": model, "training": training_config})


TRIALS: dict[Model, Callable[..., LanguageTrialConfig]] = {
    "awd_lstm": trial,
    "transformer": transformer_trial,
}


def scale_on(device: str) -> Scale:
    """Return "paper" on a GPU, else "tiny"."""
    return "tiny" if device == "cpu" else "paper"


def random_corpus(name: str, scale: Scale) -> Corpus:
    """Return a corpus of random words; step times do not depend on the words."""
    train, test, vocabulary = TINY_CORPUS if scale == "tiny" else CORPORA[name]
    text = np.random.default_rng(0).integers(vocabulary, size=train)
    return Corpus(
        name=name,
        train=text,
        valid=text[:1_000],
        test=text[:test],
        vocabulary=tuple(map(str, range(vocabulary))),
    )


def new_trainers(
    device: str,
    layers: Sequence[str],
    model: Model = "awd_lstm",
    scale: Scale = "tiny",
    precision: Precision = "float32",
    corpus: str = "ptb",
    **training: Any,
) -> list[Trainer]:
    """Return a new trainer for each output layer, with seeds 1, 2, ..."""
    text = random_corpus(corpus, scale)
    configs = [
        TRIALS[model](corpus, layer_config(name, corpus, scale), precision, scale, **training)
        for name in layers
    ]
    configs = [config.model_copy(update={"seed": seed}) for seed, config in enumerate(configs, 1)]
    return [Trainer(config, text, Runtime(device=device)) for config in configs]


def numbers_of(trainer: Trainer) -> dict[str, Tensor]:
    """Return the tensors that determine the next step, except torch's global generators."""
    return {
        name: tensor.detach()
        for name, tensor in trainer.snapshot()[0].items()
        if not name.startswith("random.global")
    }


def flop_per_token(config: LanguageTrialConfig, vocabulary: int) -> int:
    """Return the operations per token of a training step's matrix products.

    Each weight takes 2 operations (product and sum) in the forward pass and 4 in the backward pass.
    Attention over T tokens, in a layer of width D, counts like 2 T D further weights.
    """
    layer = config.output_layer
    width, context = config.model.embedding_width, config.model.context_width
    if isinstance(config, TransformerTrialConfig):
        inner, window = config.model.feed_forward_width, config.training.window
        weights = config.model.layers * width * (4 * width + 3 * inner + 2 * window)
    else:
        weights = sum(4 * out * (into + out) for into, out in config.model.layer_widths)
    if isinstance(layer, MixtureConfig):
        weights += layer.mixtures * context * (width + 1)
        # MoC mixes contexts by one more product, and then needs one softmax.
        weights += width * (
            layer.mixtures + vocabulary
            if isinstance(layer, MocConfig)
            else layer.mixtures * vocabulary
        )
    else:
        weights += width * vocabulary
    return 6 * weights


def _update(config: ConfigT, values: dict[str, Any]) -> ConfigT:
    return config.model_copy(update=values)
