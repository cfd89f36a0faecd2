"""The synthetic experiment on targets that are known: what is drawn, its gradients, and fits that must succeed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import digamma

from tests.support.output_layer_formulas import EVERY_LAYER
from trainables.config import DirichletConfig, FitConfig
from trainables.config.output_layer import (
    LmsPlifConfig,
    LmsPlifFrozenConfig,
    MosConfig,
    OutputLayerConfig,
    SoftmaxConfig,
)
from trainables.experiments.dirichlet import Model, compare, draw_model, measure
from trainables.experiments.dirichlet_targets import Targets, draw_targets
from trainables.experiments.soft_cross_entropy import soft_cross_entropy
from trainables.runtime import Runtime

every_layer = pytest.mark.parametrize("layer", EVERY_LAYER, ids=lambda layer: layer.name)


def small(layer: OutputLayerConfig, *, alpha: float = 0.3, seed: int = 4) -> tuple[Model, Targets]:
    """A model of 7 targets over 9 outcomes with width 3, in float64."""
    config = DirichletConfig(seed=seed, targets=7, outcomes=9, alpha=alpha, width=3, output_layer=layer)
    targets = draw_targets(alpha=alpha, targets=7, outcomes=9, seed=seed)
    return draw_model(config, dtype=torch.float64), targets


@pytest.mark.parametrize("alpha", [0.01, 0.1, 1.0, 5.0])
def test_targets_have_mean_variance_and_entropy_of_the_dirichlet(alpha: float) -> None:
    rows, outcomes = 20_000, 10
    found = draw_targets(alpha=alpha, targets=rows, outcomes=outcomes, seed=3)
    mean = 1 / outcomes
    variance = mean * (1 - mean) / (outcomes * alpha + 1)
    error = np.sqrt(variance / rows)
    assert np.abs(found.p_NV.mean(axis=0) - mean).max() < 5 * error
    assert found.p_NV.var(axis=0).mean() == pytest.approx(variance, rel=0.03)
    entropies = -(found.p_NV * found.log_p_NV).sum(axis=1)
    expected = digamma(outcomes * alpha + 1) - digamma(alpha + 1)
    assert abs(found.mean_entropy - expected) < 5 * entropies.std() / np.sqrt(rows)


def test_targets_survive_where_every_gamma_variate_of_a_row_underflows() -> None:
    """At alpha = 1e-4 hardly any variate is above the least float64: naive rows would be 0 / 0."""
    assert (np.random.default_rng(0).standard_gamma(1e-4, (200, 3)).sum(axis=1) == 0).any()
    found = draw_targets(alpha=1e-4, targets=200, outcomes=3, seed=0)
    assert np.isfinite(found.log_p_NV).all() and np.isfinite(found.mean_entropy)
    np.testing.assert_allclose(found.p_NV.sum(axis=1), 1.0, rtol=1e-12)
    top_two = np.sort(found.log_p_NV, axis=1)[:, -2:]
    assert (top_two[:, 1] > top_two[:, 0]).all(), "every target has one mode"
    assert (np.bincount(found.modes, minlength=3) > 30).all(), "and no outcome is preferred"


@every_layer
def test_the_loss_is_that_of_the_layers_own_log_probabilities(layer: OutputLayerConfig) -> None:
    model, targets = small(layer)
    p_NV = torch.from_numpy(targets.p_NV)
    log_p_NV = model.layer.log_probabilities(model.contexts_ND, model.outcomes_VD)
    expected = -(p_NV * log_p_NV).sum(1).mean()
    assert float(model.loss(p_NV).detach()) == pytest.approx(float(expected.detach()), abs=1e-13)


def test_the_loss_of_softmax_is_that_of_plain_numpy() -> None:
    model, targets = small(SoftmaxConfig())
    h, w = (x.detach().numpy() for x in (model.contexts_ND, model.outcomes_VD))
    p = np.exp(h @ w.T)
    p /= p.sum(axis=1, keepdims=True)
    expected = np.mean([-sum(targets.p_NV[i] * np.log(p[i])) for i in range(7)])
    assert float(model.loss(torch.from_numpy(targets.p_NV)).detach()) == pytest.approx(expected, abs=1e-13)


@every_layer
def test_gradients_agree_with_finite_differences(layer: OutputLayerConfig) -> None:
    """In float64, by every number that is fitted. The step is far below a piecewise function's intervals."""
    model, targets = small(layer)
    p_NV = torch.from_numpy(targets.p_NV)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    with torch.no_grad():  # off the start, where a piecewise function has no kinks
        draws = torch.Generator().manual_seed(1)
        for parameter in trained:
            parameter.add_(0.3 * torch.randn(parameter.shape, generator=draws, dtype=torch.float64))
    gradients = torch.autograd.grad(model.loss(p_NV), trained)
    step = 1e-6
    for parameter, gradient in zip(trained, gradients, strict=True):
        flat, expected = parameter.detach().view(-1), torch.empty(parameter.numel(), dtype=torch.float64)
        for i in range(len(flat)):
            kept = float(flat[i])
            ends = []
            for end in (step, -step):
                flat[i] = kept + end
                ends.append(float(model.loss(p_NV).detach()))
            flat[i] = kept
            expected[i] = (ends[0] - ends[1]) / (2 * step)
        torch.testing.assert_close(gradient.view(-1), expected, rtol=1e-6, atol=1e-9)


@every_layer
def test_gradients_equal_those_of_autograd_over_many_chunks(
    layer: OutputLayerConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trainables.experiments.soft_cross_entropy.chunk_rows", lambda *_: 2)
    model, targets = small(layer, alpha=0.01)
    p_NV = torch.from_numpy(targets.p_NV)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    log_p_NV = model.layer.log_probabilities(model.contexts_ND, model.outcomes_VD)
    expected = torch.autograd.grad(-(p_NV * log_p_NV).sum() / 7, trained)
    # Twice the loss: what backward gets is used.
    found = torch.autograd.grad(
        2 * soft_cross_entropy(model.layer, model.contexts_ND, model.outcomes_VD, p_NV), trained
    )
    for a, b in zip(found, expected, strict=True):
        torch.testing.assert_close(a, 2 * b, rtol=1e-10, atol=1e-13)


def test_huge_logits_give_finite_losses_and_gradients() -> None:
    for layer in (SoftmaxConfig(), MosConfig(mixtures=2, latent_dropout=0.0)):
        model, targets = small(layer)
        with torch.no_grad():
            model.outcomes_VD.mul_(1e4)
        loss = model.loss(torch.from_numpy(targets.p_NV))
        loss.backward()
        assert torch.isfinite(loss)
        assert all(p.grad is not None and bool(torch.isfinite(p.grad).all()) for p in model.parameters())


@pytest.mark.parametrize("alpha", [0.1, 1.0])
def test_softmax_as_wide_as_its_targets_are_many_reaches_their_entropy(alpha: float) -> None:
    """At d = N = M the logits are any matrix at all, so that the gap can close."""
    config = DirichletConfig(seed=1, targets=20, outcomes=20, alpha=alpha, width=20, output_layer=SoftmaxConfig())
    metrics = measure(config, Runtime())["dirichlet@1"].metrics
    assert 0 <= float(metrics["excess_cross_entropy"]) < 1e-3
    assert metrics["modes_matched"] == 100 and metrics["met_rule"] == 1


def test_a_wider_softmax_comes_closer() -> None:
    gaps = []
    for width in (1, 4, 16):
        config = DirichletConfig(seed=2, targets=40, outcomes=40, alpha=0.1, width=width, output_layer=SoftmaxConfig())
        gaps.append(float(measure(config, Runtime())["dirichlet@1"].metrics["excess_cross_entropy"]))
    assert gaps[0] > 1.5 * gaps[1] > 1.5**2 * gaps[2] > 0


def test_the_same_seed_gives_the_same_bits_and_another_one_others() -> None:
    def found(seed: int) -> dict[str, object]:
        layer, few = LmsPlifConfig(knots=50), FitConfig(adam_steps=20, most_rounds=1)
        config = DirichletConfig(seed=seed, targets=30, outcomes=30, alpha=0.1, width=4, output_layer=layer, fit=few)
        return dict(measure(config, Runtime())["dirichlet@1"].metrics)

    assert found(1) == found(1) != found(2)


def test_a_fit_that_meets_the_limit_says_so() -> None:
    short = FitConfig(adam_steps=0, most_rounds=1, tolerance=0.0)
    config = DirichletConfig(
        seed=1, targets=30, outcomes=30, alpha=0.1, width=4, output_layer=SoftmaxConfig(), fit=short
    )
    metrics = measure(config, Runtime())["dirichlet@1"].metrics
    assert (metrics["met_rule"], metrics["iterations"]) == (0, 20)


def test_only_a_learned_piecewise_function_starts_as_the_identity() -> None:
    """Frozen, its random slopes are what it is about."""
    logits = torch.linspace(-3, 3, 50, dtype=torch.float64)
    for layer, identity in ((LmsPlifConfig(knots=40), True), (LmsPlifFrozenConfig(knots=40), False)):
        model, _ = small(layer)
        bent = model.layer.function(logits)  # type: ignore[operator]
        assert torch.allclose(bent - bent[0], logits - logits[0], atol=1e-6) == identity


def test_the_comparison_is_the_mean_divergence_and_the_share_of_right_modes() -> None:
    model, targets = small(SoftmaxConfig())
    log_p = model.log_probabilities().numpy()
    found = compare(model, targets)
    by_hand = [float(sum(p * np.log(p / np.exp(q)))) for p, q in zip(targets.p_NV, log_p, strict=True)]
    assert found["excess_cross_entropy"] == pytest.approx(np.mean(by_hand), rel=1e-9)
    right = sum(int(np.argmax(p) == np.argmax(q)) for p, q in zip(targets.p_NV, log_p, strict=True))
    assert found["modes_matched"] == pytest.approx(100 * right / 7)


@every_layer
def test_the_config_knows_how_many_numbers_are_fitted(layer: OutputLayerConfig) -> None:
    config = DirichletConfig(seed=1, targets=7, outcomes=9, alpha=1.0, width=3, output_layer=layer)
    model = draw_model(config, dtype=torch.float64)
    assert config.parameters == sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
