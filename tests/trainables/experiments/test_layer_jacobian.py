"""Expected values come from automatic differentiation and finite differences."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest
import torch

from trainables.config import (
    ConvolutionLayerConfig,
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    LayerJacobianConfig,
    NonLocalLayerConfig,
    identity,
)
from trainables.draws import stream
from trainables.experiments.layer_jacobian import chain, jacobian, measure, spectrum_metrics
from trainables.experiments.mixture_of_experts import MixtureOfExperts, make_layer
from trainables.runtime import Runtime

LAYERS = [
    (DenseLayerConfig(), False),
    (ExpertsLayerConfig(experts=4, gates="constant"), False),
    (ExpertsLayerConfig(experts=4), False),
    (ExpertsLayerConfig(experts=3), True),
    (ExpertsLayerConfig(experts=3, gate_for="unit"), True),
]


@pytest.mark.parametrize(("config", "gate_bias"), LAYERS)
def test_closed_form_is_the_derivative(config: HiddenLayerConfig, gate_bias: bool) -> None:
    generator = torch.Generator().manual_seed(3)
    layer = MixtureOfExperts(config, 6, 5, gate_bias=gate_bias).double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_(generator=generator)
    inputs_NI = torch.randn(20, 6, generator=generator, dtype=torch.float64)
    closed_NOI = jacobian(layer, inputs_NI)
    exact_NOI = torch.func.vmap(torch.func.jacrev(lambda x: layer(x[None])[0]))(inputs_NI)
    torch.testing.assert_close(closed_NOI, exact_NOI, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize(
    ("config", "width"),
    [
        (DenseLayerConfig(), 12),
        (ExpertsLayerConfig(experts=3), 12),
        (ConvolutionLayerConfig(), 128),
        (ConvolutionLayerConfig(experts=2), 128),
        (ConvolutionLayerConfig(experts=3, gates="softmax"), 128),
        (NonLocalLayerConfig(), 128),
        (NonLocalLayerConfig(gates="constant"), 128),
    ],
)
def test_chain_agrees_with_finite_differences(
    config: HiddenLayerConfig, width: int, depth: int
) -> None:
    generator = torch.Generator().manual_seed(4)
    layers = [make_layer(config, width, width, gate_bias=False).double() for _ in range(depth)]
    for layer in layers:
        layer.initialise(generator)
    input_I = torch.randn(width, generator=generator, dtype=torch.float64)
    product_NOI, _, _ = chain(layers, input_I[None], generator)
    step = 1e-6
    points = torch.cat([input_I + step * torch.eye(width), input_I - step * torch.eye(width)])
    for layer in layers:
        points = layer(points.double()).detach()
    differences_IO = (points[:width] - points[width:]) / (2 * step)
    torch.testing.assert_close(product_NOI[0], differences_IO.T, rtol=0, atol=1e-7)


def test_rows_of_a_chain() -> None:
    generator = torch.Generator().manual_seed(2)
    layers = [make_layer(DenseLayerConfig(), 9, 9, gate_bias=False).double() for _ in range(4)]
    for layer in layers:
        layer.initialise(generator)
    inputs_NI = torch.randn(30, 9, generator=generator, dtype=torch.float64)
    product_NOI, gaussian_NOI, zero_rows_N = chain(layers, inputs_NI, generator)
    # A product's rank is that of its smallest factor, for random factors.
    assert (torch.linalg.matrix_rank(product_NOI, rtol=1e-12) == 9 - zero_rows_N).all()
    assert (torch.linalg.matrix_rank(gaussian_NOI, rtol=1e-12) == 9 - zero_rows_N).all()


def test_deeper_chains_share_no_draws() -> None:
    config = LayerJacobianConfig(seed=3, layer=DenseLayerConfig(), width=16, inputs=20)
    spectra = []
    for depth in (1, 2, 2):
        [result] = measure(config.model_copy(update={"depth": depth}), Runtime()).values()
        assert result.singular_values is not None
        spectra.append(result.singular_values)
    assert np.array_equal(spectra[1], spectra[2]) and not np.array_equal(spectra[0], spectra[1])
    assert "depth" not in identity(config.model_dump(mode="json")), "older trials keep their ids"


def test_averaging_pixels_has_known_spectrum() -> None:
    """The Jacobian is the Kronecker product of W and a matrix of 1/P, whose norm is 1."""
    layer_config = NonLocalLayerConfig(gates="constant")
    config = LayerJacobianConfig(seed=5, layer=layer_config, width=256, inputs=2)
    [result] = measure(config, Runtime()).values()
    generator = stream(5, zlib.crc32(layer_config.model_dump_json().encode()))
    limit = math.sqrt(6 / 8)
    weights = torch.empty(4, 4, dtype=torch.float64).uniform_(-limit, limit, generator=generator)
    assert result.singular_values is not None
    np.testing.assert_allclose(result.singular_values[:4], np.linalg.svd(weights)[1], rtol=1e-12)
    np.testing.assert_allclose(result.singular_values[4:], 0, atol=1e-13)
    assert result.metrics["sigma_min"] == 0
    assert result.metrics["vanishing_1e-6"] == 1 - 4 / 256
    assert "log10_condition_excess" not in result.metrics


def test_convolution_rows_vanish_like_coins() -> None:
    layer = ConvolutionLayerConfig(experts=2, gates="softmax")
    config = LayerJacobianConfig(seed=1, layer=layer, width=64 * 8, inputs=4)
    [result] = measure(config, Runtime()).values()
    # 32 independent units per filter would have this standard error; neighbours share weights.
    assert abs(float(result.metrics["zero_share"]) - 1 / 4) < 3 * math.sqrt(3 / 16 / 128)


@pytest.mark.parametrize("layer", [ConvolutionLayerConfig(), NonLocalLayerConfig()])
def test_image_needs_whole_channels(layer: HiddenLayerConfig) -> None:
    with pytest.raises(ValueError, match="multiple of 64"):
        LayerJacobianConfig(seed=1, layer=layer, width=100)


def test_spectra_metrics_by_hand() -> None:
    sigma_NR = np.array([[8.0, 4.0, 2.0, 0.5], [8.0, 4.0, 1.0, 1e-17]])
    gaussian_NR = np.array([[3.0, 2.0, 1.0, 0.3], [4.0, 2.0, 2.0, 1e-17]])
    metrics = spectrum_metrics(sigma_NR, np.array([0, 1]), gaussian_NR)
    condition, gaussian = math.log10(16 * 8) / 2, math.log10(10 * 2) / 2
    by_hand = {
        "zero_share": 1 / 8,
        "singular_share": 1 / 2,
        "vanishing_1e-1": 2 / 8,
        "vanishing_1e-3": 1 / 8,  # rounding counts as zero
        "vanishing_1e-6": 1 / 8,
        "mean_vanishing_1e-3": 0,
        "log10_condition_nonzero": condition,
        "log10_condition_excess": condition - gaussian,
        "sigma_max": 8,
        "sigma_middle": 4,
        "sigma_min": 0.25,
        "stable_rank": (8**2 + 4**2 + 1.5**2 + 0.25**2) / 8**2,
        "first_half_r2": 1,
        "input_spread": 0,
    }
    assert {name: metrics[name] for name in by_hand} == pytest.approx(by_hand)
    assert "log10_condition" not in metrics, "the median over inputs is infinite"
    assert all(math.isfinite(float(value)) for value in metrics.values())
    finite = spectrum_metrics(sigma_NR[[0, 0, 1]], np.array([0, 0, 1]), gaussian_NR[[0, 0, 1]])
    assert finite["log10_condition"] == pytest.approx(math.log10(16)), (
        "only one of three values is infinite"
    )


def test_zero_jacobian_has_no_condition_number() -> None:
    metrics = spectrum_metrics(np.zeros((1, 4)), np.array([4]), np.zeros((1, 4)))
    assert (metrics["zero_share"], metrics["entropy_rank"]) == (1.0, 0.0)
    assert "log10_condition" not in metrics and "input_spread" not in metrics
    assert all(math.isfinite(float(value)) for value in metrics.values())


@pytest.mark.parametrize("gates", ["softmax", "constant"])
@pytest.mark.parametrize("experts", [2, 3])
def test_row_without_experts_is_zero(gates: str, experts: int) -> None:
    """A fraction 2^-K of the rows, and of the singular values, is zero if there are K experts."""
    layer = ExpertsLayerConfig.model_validate(
        {"name": "experts", "experts": experts, "gates": gates}
    )
    config = LayerJacobianConfig(seed=1, layer=layer, width=64, inputs=100)
    [result] = measure(config, Runtime()).values()
    assert result.singular_values is not None and result.singular_values.shape == (64,)
    assert (np.diff(result.singular_values) <= 0).all()
    # 64 units have a standard error of about sqrt(p (1 - p) / 64); they share layer and inputs.
    p = 2.0**-experts
    assert abs(float(result.metrics["zero_share"]) - p) < 3 * math.sqrt(p * (1 - p) / 64)
    assert float(result.metrics["vanishing_1e-6"]) >= float(result.metrics["zero_share"])


def test_trial_is_mean_over_inputs() -> None:
    config = LayerJacobianConfig(
        seed=7, layer=DenseLayerConfig(), width=16, inputs=150, input_distribution="uniform"
    )
    [result] = measure(config, Runtime()).values()
    generator = stream(7, zlib.crc32(b'{"name":"dense"}'))
    limit = math.sqrt(6 / 32)
    weights_OI = torch.empty(16, 16, dtype=torch.float64).uniform_(
        -limit, limit, generator=generator
    )
    inputs_NI = torch.rand(150, 16, generator=generator, dtype=torch.float64)
    spectra = [
        np.linalg.svd((weights_OI * (weights_OI @ x > 0)[:, None]).numpy())[1] for x in inputs_NI
    ]
    assert result.singular_values is not None
    np.testing.assert_allclose(result.singular_values, np.mean(spectra, axis=0), atol=1e-12)
