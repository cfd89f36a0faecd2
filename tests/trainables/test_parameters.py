"""Parameter counts: by arithmetic as in the built model, and as the paper prints them."""

from __future__ import annotations

import pytest
import torch

from search_spaces.awd_lstm import awd_lstm
from tests.support.output_layer_formulas import EVERY_LAYER
from trainables.config import (
    CorpusConfig,
    GssConfig,
    LanguageModelConfig,
    LmsPlifConfig,
    MocConfig,
    MosConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
    TrialConfig,
)
from trainables.language_model.awd_lstm import AwdLstm
from trainables.parameters import in_millions, parameter_count

GSS = GssConfig(c=-1.5, k=2.5)
PUBLISHED: list[tuple[str, OutputLayerConfig, str]] = [
    *(("ptb", layer, "24.22") for layer in (SoftmaxConfig(), SigSoftmaxConfig(), GSS)),
    ("ptb", LmsPlifConfig(), "24.32"),
    ("ptb", MosConfig(), "21.50"),
    ("ptb", MocConfig(), "21.50"),
    *(("wikitext-2", layer, "33.55") for layer in (SoftmaxConfig(), SigSoftmaxConfig(), GSS)),
    ("wikitext-2", LmsPlifConfig(), "33.65"),
    ("wikitext-2", MosConfig(), "34.90"),
    ("wikitext-2", MocConfig(), "34.90"),
    # SM Tables 4 and 5: MoS by the number of mixtures
    ("ptb", MosConfig(mixtures=1), "19.05"),
    ("ptb", MosConfig(mixtures=3), "19.40"),
    ("ptb", MosConfig(mixtures=5), "19.75"),
    ("ptb", MosConfig(mixtures=10), "20.62"),
    ("ptb", MosConfig(mixtures=20), "22.37"),
    ("wikitext-2", MosConfig(mixtures=10), "33.92"),
    ("wikitext-2", MosConfig(mixtures=20), "35.88"),
]
VOCABULARY = {"ptb": 10_000, "wikitext-2": 33_278}


def corpus(name: str) -> CorpusConfig:
    return CorpusConfig(name=name, sha256="0" * 64)


def fair_capacity(width: int, layer: OutputLayerConfig) -> TrialConfig:
    model = LanguageModelConfig(embedding_width=width, hidden_width=960, context_width=width)
    return TrialConfig(seed=1, corpus=corpus("ptb"), model=model, output_layer=layer)


@pytest.mark.parametrize(("name", "layer", "millions"), PUBLISHED)
def test_the_paper_models_have_the_published_counts(name: str, layer: OutputLayerConfig, millions: str) -> None:
    assert in_millions(parameter_count(awd_lstm(corpus(name), layer), VOCABULARY[name])) == millions


@pytest.mark.parametrize(
    ("width", "layer", "millions"),
    [(280, MosConfig(), "17.53"), (280, SoftmaxConfig(), "16.35"), (340, SoftmaxConfig(), "17.56")],
    ids=["MoS-dagger", "Softmax-dagger", "Softmax-double-dagger"],
)
def test_the_fair_capacity_models_have_the_published_counts(
    width: int, layer: OutputLayerConfig, millions: str
) -> None:
    assert in_millions(parameter_count(fair_capacity(width, layer), VOCABULARY["ptb"])) == millions


@pytest.mark.parametrize("layer", EVERY_LAYER, ids=lambda layer: layer.name)
@pytest.mark.parametrize("vocabulary", [2000, 10_000])
def test_the_arithmetic_counts_what_the_built_model_trains(layer: OutputLayerConfig, vocabulary: int) -> None:
    config = awd_lstm(corpus("ptb"), layer)
    with torch.device("meta"):
        built = AwdLstm(config.model, config.output_layer, vocabulary)
    assert parameter_count(config, vocabulary) == sum(p.numel() for p in built.parameters() if p.requires_grad)
