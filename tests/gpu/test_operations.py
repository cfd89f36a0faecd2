from __future__ import annotations

from typing import get_args

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import nll_loss
from torch.utils.flop_counter import FlopCounterMode

from gpu_proof.trials import (
    LAYERS,
    STACKED,
    flop_per_token,
    layer_config,
    transformer_trial,
    trial,
)
from trainables.config import CustomConfig, LanguageTrialConfig, OutputLayerConfig
from trainables.language_model import AwdLstm, LanguageModel, Transformer
from trainables.stack import stack_key


@pytest.mark.parametrize("kind", ["lstm", "transformer"])
@pytest.mark.parametrize("name", LAYERS)
def test_operations_equal_torchs_count(name: str, kind: str) -> None:
    """The counted step uses plain formulas: torch cannot count our own loss and gradients."""
    layer, (vocabulary, steps, batch) = layer_config(name, "ptb", "tiny"), (50, 5, 3)
    config: LanguageTrialConfig
    if kind == "lstm":
        config = lstm = trial("ptb", layer, "float32", "tiny")
        model: LanguageModel = AwdLstm(lstm.model, layer, vocabulary)
        # States from before the window get no gradient.
        missing = sum(2 * batch * 4 * out * out for _, out in lstm.model.layer_widths)
    else:
        config = transformer = transformer_trial("ptb", layer, "float32", "tiny", window=steps)
        model, missing = Transformer(transformer.model, layer, vocabulary), 0
    model.eval().initialise(torch.Generator().manual_seed(0))
    tokens = torch.zeros(steps, batch, dtype=torch.int64)
    # The counter misses oneDNN's LSTM and the CPU's attention kernel.
    unseen = torch.backends.mkldnn.flags(enabled=False), sdpa_kernel(SDPBackend.MATH)
    with unseen[0], unseen[1], FlopCounterMode(display=False) as counted:
        hidden = model.contexts(tokens, model.zero_state(batch)).dropped_TBC.flatten(0, 1)
        log_p = model.output.log_probabilities(hidden, model.embedding_VD)
        nll_loss(log_p, tokens.flatten()).backward()
    planned = steps * batch * flop_per_token(config, vocabulary)
    assert counted.get_total_flops() == planned - missing


def test_stack_measures_every_layer() -> None:
    layers = {name: layer_config(name, "ptb") for name in LAYERS}
    kinds = get_args(get_args(OutputLayerConfig)[0])
    assert {type(layer) for layer in layers.values()} == {*kinds} - {CustomConfig}
    keys = {name: stack_key(trial("ptb", layers[name], "tf32", "paper")) for name in LAYERS}
    assert {name for name, key in keys.items() if key is not None} == {*STACKED}
