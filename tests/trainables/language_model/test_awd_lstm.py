"""The network's initial weights and their number; `training/test_protocol.py` holds its recurrence
to the equations."""

from __future__ import annotations

import pytest
import torch

from search_spaces.awd_lstm import awd_lstm
from tests.support.output_layer_formulas import EVERY_LAYER
from trainables.config import CorpusConfig, GssConfig, LanguageModelConfig, OutputLayerConfig
from trainables.language_model.awd_lstm import AwdLstm
from trainables.output_layers import PointwiseSoftmax
from trainables.parameters import parameter_count


def test_weights_start_as_the_protocol_says() -> None:
    config = LanguageModelConfig(embedding_width=64, hidden_width=100, context_width=64)
    model = AwdLstm(config, GssConfig(c=0, k=2), 2000)
    model.initialise(torch.Generator().manual_seed(3))
    embedding = model.embedding_VD.detach()
    assert embedding.abs().max() <= 0.1
    assert embedding.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.01)
    for layer, width in zip(model.layers, (100, 100, 64), strict=True):
        for parameter in layer.parameters():
            assert 0.9 / width**0.5 < parameter.abs().max() <= 1 / width**0.5
    assert isinstance(model.output, PointwiseSoftmax)
    assert not model.output.bias_V.any()


@pytest.mark.parametrize("layer", EVERY_LAYER, ids=lambda layer: layer.name)
@pytest.mark.parametrize(("vocabulary", "head_rank"), [(2000, None), (10_000, None), (10_000, 16)])
def test_the_arithmetic_counts_what_the_built_model_trains(
    layer: OutputLayerConfig, vocabulary: int, head_rank: int | None
) -> None:
    config = awd_lstm(CorpusConfig(name="ptb", sha256="0" * 64), layer)
    config = config.model_copy(
        update={"model": config.model.model_copy(update={"head_rank": head_rank})}
    )
    with torch.device("meta"):
        built = AwdLstm(config.model, config.output_layer, vocabulary)
    assert parameter_count(config, vocabulary) == sum(
        p.numel() for p in built.parameters() if p.requires_grad
    )
