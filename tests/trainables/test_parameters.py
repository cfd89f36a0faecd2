"""Parameter counts: by arithmetic as in the built model; `tests/search_spaces` has the printed ones."""

from __future__ import annotations

import pytest
import torch

from search_spaces.awd_lstm import awd_lstm
from tests.support.output_layer_formulas import EVERY_LAYER
from trainables.config import CorpusConfig, OutputLayerConfig
from trainables.language_model.awd_lstm import AwdLstm
from trainables.parameters import parameter_count


@pytest.mark.parametrize("layer", EVERY_LAYER, ids=lambda layer: layer.name)
@pytest.mark.parametrize("vocabulary", [2000, 10_000])
def test_the_arithmetic_counts_what_the_built_model_trains(layer: OutputLayerConfig, vocabulary: int) -> None:
    config = awd_lstm(CorpusConfig(name="ptb", sha256="0" * 64), layer)
    with torch.device("meta"):
        built = AwdLstm(config.model, config.output_layer, vocabulary)
    assert parameter_count(config, vocabulary) == sum(p.numel() for p in built.parameters() if p.requires_grad)
