"""Tests of the AWD-LSTM, except its recurrence, which `training/test_protocol.py` tests."""

from __future__ import annotations

import pytest
import torch

from trainables.config import LanguageModelConfig, SoftmaxConfig
from trainables.language_model import AwdLstm


def test_initial_weights_follow_protocol() -> None:
    config = LanguageModelConfig(embedding_width=64, hidden_width=100, context_width=64)
    model = AwdLstm(config, SoftmaxConfig(), 2000)
    model.initialise(torch.Generator().manual_seed(3))
    embedding = model.embedding_VD.detach()
    assert embedding.abs().max() <= 0.1
    assert embedding.std().item() == pytest.approx(0.1 / 3**0.5, rel=0.01)
    for layer, width in zip(model.layers, (100, 100, 64), strict=True):
        for parameter in layer.parameters():
            assert 0.9 / width**0.5 < parameter.abs().max() <= 1 / width**0.5
    assert not model.output.get_parameter("bias_V").any()
