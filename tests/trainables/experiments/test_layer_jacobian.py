"""Expected values come from automatic differentiation."""

from __future__ import annotations

import math
import zlib

import numpy as np
import pytest
import torch

from trainables.config import (
    DenseLayerConfig,
    ExpertsLayerConfig,
    HiddenLayerConfig,
    LayerJacobianConfig,
)
from trainables.draws import stream
from trainables.experiments.layer_jacobian import jacobian, measure, spectrum_metrics
from trainables.experiments.mixture_of_experts import MixtureOfExperts
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
