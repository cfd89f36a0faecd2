from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.support import tiny_transformer as tiny
from tests.support import tiny_trial
from tests.support import transformer_formulas as formulas
from tests.support.output_layer_formulas import EVERY_LAYER
from trainables.config import (
    OutputLayerConfig,
    SoftmaxConfig,
    TransformerConfig,
    TransformerTrialConfig,
)
from trainables.language_model import AwdLstm, Transformer
from trainables.parameters import parameter_count

VOCABULARY = 15
HEADS: tuple[dict[str, Any], ...] = ({}, {"head": "untied"}, {"head": "untied", "head_rank": 3})


def drawn(config: TransformerTrialConfig) -> Transformer:
    model = Transformer(config.model, config.output_layer, VOCABULARY).double()
    generator = torch.Generator().manual_seed(5)
    model.initialise(generator)
    for parameter in model.parameters():
        if parameter.dim() == 1 and parameter.requires_grad:
            nn.init.normal_(parameter, parameter.mean().item(), 0.5, generator=generator)
    return model


def tokens(steps: int, batch: int, seed: int = 0) -> Tensor:
    return torch.randint(VOCABULARY, (steps, batch), generator=torch.Generator().manual_seed(seed))


def log_p_of(model: Transformer, tokens_TB: Tensor) -> Tensor:
    """Return log P in evaluation mode, T x B x V."""
    contexts_TBC = (
        model.eval().contexts(tokens_TB, model.zero_state(tokens_TB.shape[1])).dropped_TBC
    )
    log_p_NV = model.output.log_probabilities(contexts_TBC.flatten(0, 1), model.output_weight())
    return log_p_NV.view(*tokens_TB.shape, -1).detach()


@pytest.mark.parametrize("head", HEADS, ids=str)
@pytest.mark.parametrize("layer", EVERY_LAYER, ids=lambda layer: layer.name)
def test_log_p_equals_the_formulas(layer: OutputLayerConfig, head: dict[str, Any]) -> None:
    config = tiny.trial(output_layer=layer, model={"width": 12, "heads": 3, "layers": 3} | head)
    model, tokens_TB = drawn(config), tokens(9, 2)
    at = {name: parameter.detach() for name, parameter in model.named_parameters()}
    expected = torch.stack(
        [formulas.log_p(config, at, window_T) for window_T in tokens_TB.unbind(1)], 1
    )
    torch.testing.assert_close(log_p_of(model, tokens_TB), expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("width", [32, 128])
@pytest.mark.parametrize("head", ["tied", "untied"])
def test_streams_start_with_unit_variance(width: int, head: str) -> None:
    config = TransformerConfig.model_validate(
        {"width": width, "layers": 4, "heads": 2, "head": head}
    )
    model = Transformer(config, SoftmaxConfig(), 500).eval()
    model.initialise(torch.Generator().manual_seed(2))
    tokens_TB = torch.randint(500, (32, 8), generator=torch.Generator().manual_seed(0))
    streams: list[Tensor] = []
    model.layers[0].register_forward_pre_hook(lambda _, inputs: streams.append(inputs[0]))
    model.norm.register_forward_pre_hook(lambda _, inputs: streams.append(inputs[0]))
    contexts = model.contexts(tokens_TB, []).dropped_TBC
    assert streams[0].std().item() == pytest.approx(1.0, rel=0.05)
    assert 1.0 < streams[1].std().item() < math.sqrt(2.5)
    logits = contexts.flatten(0, 1) @ model.output_weight().T
    assert logits.std().item() == pytest.approx(0.25, rel=0.1)


@pytest.mark.parametrize("layer", EVERY_LAYER, ids=lambda layer: layer.name)
@pytest.mark.parametrize("head", HEADS, ids=str)
def test_parameter_count_equals_built_model(layer: OutputLayerConfig, head: dict[str, Any]) -> None:
    config = tiny.trial(output_layer=layer, model={"width": 60, "heads": 3, "layers": 5} | head)
    lstm = tiny_trial.trial(output_layer=layer, head_rank=head.get("head_rank"))
    with torch.device("meta"):
        models = Transformer(config.model, layer, 2000), AwdLstm(lstm.model, layer, 2000)
    trained = [
        sum(weights.numel() for weights in model.parameters() if weights.requires_grad)
        for model in models
    ]
    assert [parameter_count(config, 2000), parameter_count(lstm, 2000)] == trained
