"""Every output layer: its log P, its loss and its gradients against a formula in float64."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logsumexp
from torch import Tensor

from trainables.config import GssConfig, OutputLayerConfig, SigSoftmaxConfig, SoftmaxConfig
from trainables.output_layers import PointwiseSoftmax, build_output_layer
from trainables.output_layers.linear_cross_entropy import linear_cross_entropy

CONFIGS: list[OutputLayerConfig] = [
    SoftmaxConfig(),
    SigSoftmaxConfig(),
    GssConfig(c=-1.5, k=2.5),
    GssConfig(c=2.0, k=1.25),
    GssConfig(c=0.5, k=0.5),
]
ids = [config.model_dump_json() for config in CONFIGS]


def softplus(t: np.ndarray) -> np.ndarray:
    return np.maximum(t, 0) + np.log1p(np.exp(-np.abs(t)))


def true_log_p(config: OutputLayerConfig, logits: np.ndarray) -> np.ndarray:
    """log P by the papers' formulas, in float64 with numpy: independent of the implementation."""
    match config:
        case SoftmaxConfig():
            values = logits
        case SigSoftmaxConfig():
            # Kanai et al. define it as exp(x) sigmoid(x), normalised.
            values = logits - softplus(-logits)
        case GssConfig(c=c, k=k):
            values = k * (logits - c) + c - (k - 1) * softplus(logits - c)
    return values - logsumexp(values, axis=1, keepdims=True)


def layer_of(config: OutputLayerConfig, vocabulary: int) -> PointwiseSoftmax:
    layer = build_output_layer(config, vocabulary).double()
    assert isinstance(layer, PointwiseSoftmax)
    torch.nn.init.normal_(layer.bias_V, generator=torch.Generator().manual_seed(5))
    return layer


def inputs(rows: int, width: int, vocabulary: int, scale: float = 1.0, seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(rows, width, dtype=torch.float64, generator=generator) * scale
    weight = torch.randn(vocabulary, width, dtype=torch.float64, generator=generator)
    return hidden, weight, torch.randint(vocabulary, (rows,), generator=generator)


@pytest.mark.parametrize("config", CONFIGS, ids=ids)
@pytest.mark.parametrize("scale", [1.0, 30.0, 1e4])
def test_log_p_is_the_formula_and_sums_to_one(config: OutputLayerConfig, scale: float) -> None:
    hidden, weight, _ = inputs(7, 3, 11, scale)
    layer = layer_of(config, 11)
    log_p = layer.log_probabilities(hidden, weight).detach().numpy()
    logits = (hidden @ weight.T + layer.bias_V).detach().numpy()
    np.testing.assert_allclose(log_p, true_log_p(config, logits), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.exp(log_p).sum(1), 1.0, rtol=0, atol=1e-12)


@pytest.mark.parametrize("config", CONFIGS, ids=ids)
@given(
    rows=st.integers(1, 9), width=st.integers(1, 4), vocabulary=st.integers(2, 12), chunk=st.integers(1, 12),
    scale=st.sampled_from([0.1, 1.0, 20.0, 1e4]), seed=st.integers(0, 1000),
)  # fmt: skip
@settings(max_examples=40, deadline=None)
def test_loss_and_gradients_equal_the_plain_formulation(
    config: OutputLayerConfig, rows: int, width: int, vocabulary: int, chunk: int, scale: float, seed: int
) -> None:
    hidden, weight, targets = inputs(rows, width, vocabulary, scale, seed)
    layer = layer_of(config, vocabulary)
    parameters = [hidden.requires_grad_(), weight.requires_grad_(), layer.bias_V]

    loss = linear_cross_entropy(hidden, weight, layer.bias_V, targets, layer, rows_per_chunk=chunk)
    gradients = torch.autograd.grad(3.0 * loss, parameters)

    logits = hidden @ weight.T + layer.bias_V
    expected_loss = -true_log_p(config, logits.detach().numpy())[np.arange(rows), targets].mean()
    plain = torch.nn.functional.nll_loss(layer.log_probabilities(hidden, weight), targets)
    expected = torch.autograd.grad(3.0 * plain, parameters)

    assert loss.item() == pytest.approx(expected_loss, rel=1e-10, abs=1e-10)
    for gradient, truth in zip(gradients, expected, strict=True):
        torch.testing.assert_close(gradient, truth, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("config", CONFIGS, ids=ids)
def test_gradients_agree_with_finite_differences(config: OutputLayerConfig) -> None:
    hidden, weight, targets = inputs(6, 3, 8)
    layer = layer_of(config, 8)

    def loss(h: Tensor, w: Tensor, b: Tensor) -> Tensor:
        return linear_cross_entropy(h, w, b, targets, layer, rows_per_chunk=4)

    arguments = (hidden.requires_grad_(), weight.requires_grad_(), layer.bias_V)
    assert torch.autograd.gradcheck(loss, arguments, eps=1e-6, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=ids)
def test_the_slope_is_the_derivative_and_f_increases(config: OutputLayerConfig) -> None:
    layer = layer_of(config, 2)
    x = torch.linspace(-40, 40, 801, dtype=torch.float64).reshape(1, -1)
    value, slope = x.clone(), torch.empty_like(x)
    layer.value_and_slope_(value, slope)
    offset = (layer.transform(x) - value)[0, 0]
    torch.testing.assert_close(value + offset, layer.transform(x), rtol=1e-12, atol=1e-11)
    step = 1e-5
    numeric = (layer.transform(x + step) - layer.transform(x - step)) / (2 * step)
    torch.testing.assert_close(slope, numeric, rtol=1e-7, atol=1e-7)
    assert (slope > 0).all()


@pytest.mark.parametrize("c", [-2.0, 0.0, 1.5])
def test_gss_with_slope_one_is_softmax(c: float) -> None:
    hidden, weight, targets = inputs(50, 4, 30)
    layer, softmax = layer_of(GssConfig(c=c, k=1.0), 30), layer_of(SoftmaxConfig(), 30)
    expected = softmax.log_probabilities(hidden, weight)
    torch.testing.assert_close(layer.log_probabilities(hidden, weight), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        layer.loss(hidden, weight, targets), softmax.loss(hidden, weight, targets), rtol=0, atol=1e-6
    )


def test_gss_0_2_is_sigsoftmax_as_kanai_defines_it() -> None:
    hidden, weight, _ = inputs(50, 4, 30)
    layer, sigsoftmax = layer_of(GssConfig(c=0.0, k=2.0), 30), layer_of(SigSoftmaxConfig(), 30)
    log_p = layer.log_probabilities(hidden, weight)
    torch.testing.assert_close(log_p, sigsoftmax.log_probabilities(hidden, weight), rtol=0, atol=1e-6)
    logits = (hidden @ weight.T + layer.bias_V).detach().numpy()
    probability = np.exp(logits) * expit(logits)
    probability /= probability.sum(1, keepdims=True)
    np.testing.assert_allclose(np.exp(log_p.detach().numpy()), probability, rtol=1e-6)


@pytest.mark.parametrize("config", CONFIGS, ids=ids)
def test_float32_is_close_to_the_float64_truth_over_many_chunks(config: OutputLayerConfig) -> None:
    hidden, weight, targets = inputs(300, 16, 500, scale=0.3)
    layer32 = layer_of(config, 500).float()
    layer = layer_of(config, 500)
    leaf64, leaf32 = weight.clone().requires_grad_(), weight.float().requires_grad_()
    loss64 = linear_cross_entropy(hidden, leaf64, layer.bias_V, targets, layer)
    loss32 = linear_cross_entropy(hidden.float(), leaf32, layer32.bias_V, targets, layer32, rows_per_chunk=7)
    assert loss32.dtype == torch.float32
    assert loss32.item() == pytest.approx(loss64.item(), rel=1e-6)
    (gradient64,) = torch.autograd.grad(loss64, leaf64)
    (gradient32,) = torch.autograd.grad(loss32, leaf32)
    assert (gradient32.double() - gradient64).norm() <= 1e-5 * gradient64.norm()


def test_the_loss_alone_costs_no_gradient_and_is_the_same() -> None:
    hidden, weight, targets = inputs(20, 4, 9)
    layer = layer_of(GssConfig(c=-1.5, k=2.5), 9)
    with torch.no_grad():
        value = layer.loss(hidden, weight, targets)
    assert not value.requires_grad
    assert value.item() == layer.loss(hidden, weight.requires_grad_(), targets).item()


def test_no_targets_is_an_error() -> None:
    hidden, weight, targets = inputs(3, 2, 5)
    with pytest.raises(ValueError, match="no rows"):
        layer_of(SoftmaxConfig(), 5).loss(hidden[:0], weight, targets[:0])
