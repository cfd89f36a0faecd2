"""The network itself: the recurrence in float64, its initial weights, its parameter counts."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import expit

from trainables.config import GssConfig, LanguageModelConfig, SoftmaxConfig
from trainables.language_model.awd_lstm import AwdLstm, LstmLayer
from trainables.output_layers import PointwiseSoftmax


def lstm_by_hand(layer: LstmLayer, inputs: np.ndarray) -> np.ndarray:
    """Hochreiter and Schmidhuber's equations in float64, one step at a time, gates in the order i, f, g, o."""
    w_ih, w_hh, b_ih, b_hh = (p.detach().double().numpy() for p in layer.parameters())
    h = c = np.zeros((inputs.shape[1], w_hh.shape[1]))
    outputs = []
    for x in inputs:
        i, f, g, o = np.split(x @ w_ih.T + h @ w_hh.T + b_ih + b_hh, 4, axis=1)
        c = expit(f) * c + expit(i) * np.tanh(g)
        h = expit(o) * np.tanh(c)
        outputs.append(h)
    return np.stack(outputs)


@pytest.mark.parametrize("batch", [1, 5])
def test_three_layers_follow_the_equations_and_carry_their_state(batch: int) -> None:
    config = LanguageModelConfig(embedding_width=8, hidden_width=12, context_width=8)
    model = AwdLstm(config, SoftmaxConfig(), 40)
    model.initialise(torch.Generator().manual_seed(0))
    model.eval()
    tokens = torch.randint(40, (11, batch), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        first = model.contexts(tokens[:4], model.zero_state(batch))
        second = model.contexts(tokens[4:], first.state)
    expected = model.embedding_VD.detach().double().numpy()[tokens.numpy()]
    for layer in model.layers:
        assert isinstance(layer, LstmLayer)
        expected = lstm_by_hand(layer, expected)
    found = torch.cat([first.dropped_TBC, second.dropped_TBC]).numpy()
    np.testing.assert_allclose(found, expected, atol=2e-6)


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
