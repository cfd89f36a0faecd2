"""Models of AAAI 2021 by name, with their settings for each corpus."""

from __future__ import annotations

from search_spaces.awd_lstm import awd_lstm
from trainables.config import (
    AveragingConfig,
    CorpusConfig,
    EtAsgdConfig,
    GssConfig,
    LanguageTrialConfig,
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MocConfig,
    MosConfig,
    MosPlifConfig,
    NtAsgdConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
    TrialConfig,
)

FIVE = ("softmax", "sigsoftmax", "gss", "lms_plif", "mos")
SIX = (*FIVE, "moc")
RANDOM_SEEDS = (9075, 3173, 2769, 1632, 4406, 312, 6001, 3235, 487, 1123)
"""Seeds that this project drew; the paper does not print its own."""
AVERAGING: dict[str, AveragingConfig] = {"NT-ASGD": NtAsgdConfig(), "ET-ASGD": EtAsgdConfig()}


def output_layer(model: str, corpus: str) -> OutputLayerConfig:
    """Return a model's output layer with the paper's settings for a corpus."""
    layers: dict[str, OutputLayerConfig] = {
        "softmax": SoftmaxConfig(),
        "sigsoftmax": SigSoftmaxConfig(),
        "gss": GssConfig(c=-1.5, k=3.0 if corpus == "wikitext-2" else 2.5),
        "lms_plif": LmsPlifConfig(),
        "lms_plif_frozen": LmsPlifFrozenConfig(),
        "mos": MosConfig(),
        "moc": MocConfig(),
        "mos_plif": MosPlifConfig(),
    }
    return layers[model]


def trial(
    corpus: CorpusConfig, model: str, *, seed: int | None = None, averaging: str = "ET-ASGD"
) -> TrialConfig:
    """Return a model's trial, by default with the authors' seed."""
    return awd_lstm(
        corpus, output_layer(model, corpus.name), seed=seed, averaging=AVERAGING[averaging]
    )


def model_and_seed(config: LanguageTrialConfig) -> str:
    """Return a name: "mos seed=28"."""
    return f"{config.output_layer.name} seed={config.seed}"


def model_and_averaging(config: TrialConfig) -> str:
    """Return a name such as "mos ET-ASGD seed=28"."""
    averaging = "NT-ASGD" if isinstance(config.training.averaging, NtAsgdConfig) else "ET-ASGD"
    return f"{config.output_layer.name} {averaging} seed={config.seed}"
