from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch.nn.functional import embedding

from search_spaces.awd_lstm import awd_lstm
from search_spaces.gss_grid import C_VALUES, K_VALUES
from search_spaces.scales import SCALES, apply_scale
from tests.support import output_layer_formulas as formulas
from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from trainables.config import (
    CorpusConfig,
    GssConfig,
    LanguageTrialConfig,
    OutputLayerConfig,
    TrialConfig,
)
from trainables.output_layers import PiecewiseLinear
from trainables.output_layers.pointwise import centred_bias
from trainables.runtime import Runtime
from trainables.training import Trainer

CORNERS = [
    GssConfig(c=c, k=k) for c in (C_VALUES[0], C_VALUES[-1]) for k in (K_VALUES[0], K_VALUES[-1])
]


def scaled(layer: OutputLayerConfig) -> TrialConfig:
    return tiny.trial(output_layer=layer).with_values({"model.start": "scaled"})


@pytest.mark.parametrize("trial", [scaled, tiny_transformer.trial], ids=["lstm", "transformer"])
@pytest.mark.parametrize("layer", [*formulas.EVERY_LAYER, *CORNERS], ids=str)
def test_initial_frequencies_match_text(
    layer: OutputLayerConfig, trial: Callable[[OutputLayerConfig], LanguageTrialConfig]
) -> None:
    corpus = tiny.corpus()
    model = Trainer(trial(layer), corpus, Runtime()).model
    counts = np.bincount(corpus.train, minlength=tiny.VOCABULARY) + 1
    parameters = {name: p.detach().double() for name, p in model.output.named_parameters()}
    for name in parameters:
        if name.startswith("latent"):  # a mixture's context vectors are tanh of these
            parameters[name] = torch.zeros_like(parameters[name])
    weight_VD = model.output_weight().detach().double()
    log_p = formulas.log_p(layer, parameters, torch.zeros_like(weight_VD[:1]), weight_VD)
    np.testing.assert_allclose(log_p[0].numpy(), np.log(counts / counts.sum()), atol=1e-4)


def test_extreme_frequency_is_clamped() -> None:
    flat = PiecewiseLinear(2, limit=1.0, learning_rate=0.1)
    with torch.no_grad():
        flat.weight_K.fill_(-30.0)  # some slopes are 1e-13
    bias_V = centred_bias(flat, torch.log_softmax(torch.tensor([5.0, 0.0, -5.0]), 0))
    torch.testing.assert_close(bias_V, torch.tensor([40.0, 0.0, -40.0]), rtol=0, atol=1e-3)


def test_gates_have_unit_variance() -> None:
    config = awd_lstm(CorpusConfig(name="tiny", sha256="0" * 64), GssConfig(c=0.0, k=2.0))
    quick = apply_scale(SCALES["quick"], config)
    assert isinstance(quick, TrialConfig)
    published = quick.with_values({"model.start": "published"})
    models = [Trainer(trial, tiny.corpus(), Runtime()).model.eval() for trial in (quick, published)]
    generator, deviations = torch.Generator().manual_seed(0), []
    tokens_TB = torch.randint(tiny.VOCABULARY, (100, 50), generator=generator)
    for model in models:
        h3_TBC = model.contexts(tokens_TB, model.zero_state(50)).dropped_TBC
        deviations.append((h3_TBC[50:] - h3_TBC[50:].mean((0, 1))).std().item())
    first = models[0].layers[0].get_parameter("weight_ih")
    gates = embedding(tokens_TB, models[0].embedding_VD) @ first.t()
    assert gates.var().item() == pytest.approx(1.0, abs=0.1)
    assert models[0].embedding_VD.norm(dim=1).mean().item() == pytest.approx(
        20 * 0.1 / math.sqrt(3), rel=0.03
    )
    assert deviations[0] > 10 * deviations[1]
