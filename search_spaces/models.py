"""The models of AAAI 2021 by name, with the settings that each corpus got, and the seeds they are
trained with."""

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
"""Ten seeds, drawn once; the paper does not print its own."""
AVERAGING: dict[str, AveragingConfig] = {"NT-ASGD": NtAsgdConfig(), "ET-ASGD": EtAsgdConfig()}


def output_layer(model: str, corpus: str) -> OutputLayerConfig:
    """The output layer of a model as the paper set it for a corpus; GSS is k = 3 on WikiText-2 and
    2.5 elsewhere."""
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
    """A model's trial; the seed is the authors' unless given."""
    return awd_lstm(
        corpus, output_layer(model, corpus.name), seed=seed, averaging=AVERAGING[averaging]
    )


def model_and_seed(config: LanguageTrialConfig) -> str:
    """ "mos seed=28": the name of a trial whose seed is all that differs from others of its
    model."""
    return f"{config.output_layer.name} seed={config.seed}"


def model_and_averaging(config: TrialConfig) -> str:
    """ "mos ET-ASGD seed=28"."""
    averaging = "NT-ASGD" if isinstance(config.training.averaging, NtAsgdConfig) else "ET-ASGD"
    return f"{config.output_layer.name} {averaging} seed={config.seed}"
