"""Parameter counts: by arithmetic as in the built model, and as the paper prints them."""

from __future__ import annotations

import pytest
import torch

from trainables.config import CorpusConfig, GssConfig, LanguageModelConfig, TrialConfig
from trainables.language_model.awd_lstm import AwdLstm
from trainables.parameters import in_millions, parameter_count

PUBLISHED = [(10_000, "24.22"), (33_278, "33.55")]


def trial(model: LanguageModelConfig) -> TrialConfig:
    corpus = CorpusConfig(name="any", sha256="0" * 64)
    return TrialConfig(seed=1, corpus=corpus, model=model, output_layer=GssConfig(c=-1.5, k=2.5))


@pytest.mark.parametrize(("vocabulary", "millions"), PUBLISHED)
def test_the_paper_models_have_the_published_counts(vocabulary: int, millions: str) -> None:
    assert in_millions(parameter_count(trial(LanguageModelConfig()), vocabulary)) == millions


@pytest.mark.parametrize(
    "model",
    [LanguageModelConfig(), LanguageModelConfig(embedding_width=24, hidden_width=64, context_width=24)],
)
@pytest.mark.parametrize("vocabulary", [2000, 10_000])
def test_the_arithmetic_counts_what_the_built_model_holds(model: LanguageModelConfig, vocabulary: int) -> None:
    config = trial(model)
    with torch.device("meta"):
        built = AwdLstm(config.model, config.output_layer, vocabulary)
    assert parameter_count(config, vocabulary) == sum(p.numel() for p in built.parameters())
