"""Expected values come from autograd on the papers' formulas."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from tests.support.output_layer_formulas import EVERY_LAYER, inputs, layer_of, log_p, parameters_of
from trainables.config import OutputLayerConfig
from trainables.measurements import log_p_jacobian as module
from trainables.measurements.log_p_jacobian import log_p_jacobian
from trainables.output_layers import OutputLayer

VOCABULARY, WIDTH = 11, 3
every_layer = pytest.mark.parametrize("config", EVERY_LAYER, ids=lambda config: config.name)


def truth(config: OutputLayerConfig, layer: OutputLayer, weight: Tensor, context: Tensor) -> Tensor:
    at = {name: parameter.detach() for name, parameter in parameters_of(layer).items()}
    jacobian: Tensor = torch.autograd.functional.jacobian(
        lambda h: log_p(config, at, h[None], weight)[0], context
    )
    return jacobian


def centred(jacobian: Tensor) -> Tensor:
    return jacobian - jacobian.mean(0)


@every_layer
@pytest.mark.parametrize("scale", [1.0, 100.0])
def test_jacobian_equals_the_formula(config: OutputLayerConfig, scale: float) -> None:
    layer = layer_of(config, VOCABULARY, WIDTH).eval()
    hidden, weight, _ = inputs(6, WIDTH, VOCABULARY, scale=scale)
    for context in hidden:
        jacobian = centred(log_p_jacobian(layer, weight, context))
        expected = centred(truth(config, layer, weight, context))
        torch.testing.assert_close(jacobian, expected, rtol=1e-9, atol=1e-10 * scale)
        assert not jacobian.requires_grad


@every_layer
def test_users_layer_is_differentiated(
    monkeypatch: pytest.MonkeyPatch, config: OutputLayerConfig
) -> None:
    """The package knows no formula for a user's subclass, so it must use backpropagation."""
    monkeypatch.setattr(module, "COPIES", 2)
    layer = layer_of(config, VOCABULARY, WIDTH).eval().requires_grad_(False)
    layer.__class__ = type("Users", (type(layer),), {})
    hidden, weight, _ = inputs(1, WIDTH, VOCABULARY)
    jacobian = log_p_jacobian(layer, weight, hidden[0])
    torch.testing.assert_close(jacobian, truth(config, layer, weight, hidden[0]))
