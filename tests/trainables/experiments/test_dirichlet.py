from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import digamma
from scipy.stats import entropy

from tests.support.output_layer_formulas import EVERY_LAYER
from trainables.config import (
    DirichletConfig,
    FitConfig,
    LmsPlifConfig,
    MonotoneNnConfig,
    OutputLayerConfig,
    SoftmaxConfig,
)
from trainables.experiments.dirichlet import Model, compare, draw_targets, measure
from trainables.runtime import Runtime
from trainables.trial_folder import Metric


def small(layer: OutputLayerConfig, **changes: Any) -> DirichletConfig:
    return DirichletConfig(
        **{"seed": 4, "targets": 7, "outcomes": 9, "alpha": 0.3, "width": 3, "output_layer": layer}
        | changes
    )


def square(**changes: Any) -> dict[str, Metric]:
    size = changes.pop("size")
    settings = {"layer": SoftmaxConfig(), "alpha": 0.1, "targets": size, "outcomes": size} | changes
    return measure(small(**settings), Runtime())["dirichlet@1"].metrics


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0, 5.0])
def test_targets_have_dirichlet_moments(alpha: float) -> None:
    rows, outcomes = 20_000, 10
    p_NV, log_p_NV = draw_targets(alpha=alpha, targets=rows, outcomes=outcomes, seed=3)
    mean = 1 / outcomes
    variance = mean * (1 - mean) / (outcomes * alpha + 1)
    assert np.abs(p_NV.mean(axis=0) - mean).max() < 5 * np.sqrt(variance / rows)
    assert p_NV.var(axis=0).mean() == pytest.approx(variance, rel=0.03)
    entropies = -(p_NV * log_p_NV).sum(axis=1)
    expected = digamma(outcomes * alpha + 1) - digamma(alpha + 1)
    assert abs(entropies.mean() - expected) < 5 * entropies.std() / np.sqrt(rows)


@pytest.mark.parametrize("layer", EVERY_LAYER, ids=lambda layer: layer.name)
def test_loss_uses_layer_log_probabilities(layer: OutputLayerConfig) -> None:
    model = Model(small(layer)).double()
    assert small(layer).parameters == sum(p.numel() for p in model.parameters() if p.requires_grad)
    p_NV, _ = map(torch.from_numpy, draw_targets(alpha=0.3, targets=7, outcomes=9, seed=4))
    log_p_NV = model.layer.log_probabilities(model.contexts_ND, model.outcomes_VD)
    assert model.loss(p_NV).item() == pytest.approx(
        -(p_NV * log_p_NV).sum(1).mean().item(), abs=1e-13
    )


def test_thousand_units_start_as_identity() -> None:
    """At first f is the identity in the middle, and still has a slope at its ends."""
    function: Any = Model(small(MonotoneNnConfig(units=1000))).layer.function
    x = torch.linspace(-12, 12, 501, dtype=torch.float64, requires_grad=True)
    shift = function.double()(x) - x  # a constant, which a softmax ignores
    middle = shift[x.abs() < 6]
    assert (middle - middle.mean()).abs().max() < 2e-3
    slopes = torch.autograd.grad(shift.sum(), x)[0] + 1
    # Many sigmoids, side by side over [-10, 10], add up to a difference of two soft steps.
    edges = [torch.sigmoid(1.6 * (x.detach() + end)) for end in (10, -10)]
    assert torch.allclose(slopes, edges[0] - edges[1], atol=1e-4)


def test_only_wide_softmax_reaches_entropy() -> None:
    """If the width equals the number of outcomes, a softmax can give any matrix of logits."""
    metrics, narrow = (square(size=20, width=width) for width in (20, 1))
    assert (
        0 <= float(metrics["excess_cross_entropy"]) < 1e-3 < float(narrow["excess_cross_entropy"])
    )
    assert metrics["modes_matched"] == 100 and metrics["met_rule"] == 1


def test_seed_repeats_the_bits() -> None:
    layer, few = LmsPlifConfig(knots=50), FitConfig(adam_steps=20, most_rounds=1, tolerance=0.0)
    first, again, other = (square(size=30, layer=layer, fit=few, seed=seed) for seed in (1, 1, 2))
    assert first == again != other
    assert (first["met_rule"], first["iterations"]) == (0, 40), (
        "the limit of iterations ended the fit"
    )


def test_comparison_is_mean_divergence() -> None:
    model = Model(small(SoftmaxConfig())).double()
    targets = draw_targets(alpha=0.3, targets=7, outcomes=9, seed=4)
    logits = (model.contexts_ND @ model.outcomes_VD.T).detach().numpy()
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    comparison = compare(model, *targets)
    divergences = [entropy(target, row) for target, row in zip(targets[0], p, strict=True)]
    assert comparison["excess_cross_entropy"] == pytest.approx(np.mean(divergences), rel=1e-9)
    assert comparison["modes_matched"] == pytest.approx(
        100 * np.mean(targets[0].argmax(axis=1) == p.argmax(axis=1))
    )
