from __future__ import annotations

import pytest
import torch

from search_spaces.layer_gates import CONVOLUTIONS, LAYERS, TASKS
from trainables.config import PIXELS, ExpertsLayerConfig, LayerTaskConfig
from trainables.experiments.layer_task import (
    REGIONS,
    make_function,
    make_network,
    make_task,
    measure,
)
from trainables.runtime import Runtime
from trainables.training import DivergedError

SMALL = {"train_examples": 400, "valid_examples": 200, "test_examples": 200, "steps": 60}


def config_of(layer: str, task: str, **changes: object) -> LayerTaskConfig:
    width, hidden = LAYERS[layer]
    base = LayerTaskConfig(seed=1, task="deep", layer=hidden, width=width, **SMALL)
    return base.model_copy(update={"task": task, **changes})


def images_of(layer: str, **changes: object) -> LayerTaskConfig:
    filters, convolution = CONVOLUTIONS[layer]
    sizes = {"width": filters * PIXELS, "input_width": 3 * PIXELS}
    base = LayerTaskConfig(seed=1, task="images", layer=convolution, **sizes, **SMALL)
    return base.model_copy(update=changes)


def test_convolutions_have_nearly_equal_size() -> None:
    sizes = []
    for config in map(images_of, CONVOLUTIONS):
        network = make_network(config, torch.Generator())
        sizes.append(sum(weights.numel() for weights in network.parameters()))
        assert config.parameters == sizes[-1]
    assert sizes == [9_060, 8_994, 9_052]


def test_image_function_ignores_shifts() -> None:
    """The mean over pixels does not change if an image far from the border is shifted."""
    config = images_of("convolution")
    function = make_function(config, torch.Generator().manual_seed(4))
    images = torch.zeros(2, 3, 8, 8)
    images[0, :, 2:4, 2:4] = torch.randn(3, 2, 2, generator=torch.Generator().manual_seed(5))
    images[1] = images[0].roll((1, 2), dims=(1, 2))
    first, second = function(images.flatten(1))
    torch.testing.assert_close(first, second)
    assert not torch.allclose(first, function(torch.zeros(1, 192))[0])
    assert not make_task(config)[0].targets_NO.requires_grad


def test_trained_convolution_beats_the_mean() -> None:
    config = images_of("softmax gates", learning_rates=(1e-2,), train_examples=2_000)
    [result] = measure(config, Runtime()).values()
    assert float(result.metrics["test_error_percent"]) < 80


def test_images_need_whole_channels() -> None:
    for changes in ({"input_width": 100}, {"width": 100}):
        with pytest.raises(ValueError, match="multiple of 64"):
            images_of("convolution", **changes)


def test_networks_have_equal_size() -> None:
    layer = ExpertsLayerConfig(experts=3, gate_for="unit")
    other = LayerTaskConfig(seed=1, task="wide", layer=layer, width=7, input_width=5)
    configs = [config_of(layer, task) for layer in LAYERS for task in TASKS]
    for config in (*configs, other):
        network = make_network(config, torch.Generator())
        assert config.parameters == sum(weights.numel() for weights in network.parameters())
    assert {config.parameters for config in configs} == {3172}


@pytest.mark.parametrize("task", TASKS)
def test_seed_determines_the_task(task: str) -> None:
    dense, gated = (make_task(config_of(layer, task)) for layer in ("dense", "softmax gates"))
    for a, b in zip(dense, gated, strict=True):
        assert torch.equal(a.inputs_NI, b.inputs_NI) and torch.equal(a.targets_NO, b.targets_NO)
    train, _, test = dense
    assert not torch.equal(train.inputs_NI[:200], test.inputs_NI)
    other, _, _ = make_task(config_of("dense", task, seed=2))
    assert not torch.equal(other.targets_NO, train.targets_NO)
    assert torch.allclose(train.targets_NO.var(dim=0), torch.ones(4), atol=0.35)


def test_regions_apply_eight_linear_maps() -> None:
    config = config_of("dense", "regions")
    function = make_function(config, torch.Generator().manual_seed(4))
    inputs_NI = torch.randn(4_000, config.input_width, generator=torch.Generator().manual_seed(5))
    generator = torch.Generator().manual_seed(4)
    scores_RI = (
        torch.randn(REGIONS, config.input_width, generator=generator) / config.input_width**0.5
    )
    chosen_N = torch.stack([(scores_RI @ x).argmax() for x in inputs_NI])
    assert len(set(chosen_N.tolist())) == REGIONS
    for region in range(REGIONS):
        inside_NI = inputs_NI[chosen_N == region]
        # Least squares on one region has no residual: the function is linear there.
        weight_IO = torch.linalg.lstsq(inside_NI, function(inside_NI)).solution
        torch.testing.assert_close(inside_NI @ weight_IO, function(inside_NI), rtol=0, atol=1e-3)


def test_validation_error_chooses_learning_rate() -> None:
    slow, fast, chosen = (
        measure(config_of("softmax gates", "deep", learning_rates=rates), Runtime())[
            "layer_task@2"
        ].metrics
        for rates in ((1e-5,), (1e-2,), (1e-5, 1e-2))
    )
    assert float(slow["validation_error_percent"]) > float(fast["validation_error_percent"])
    assert chosen == fast, "other learning rates must not change the result"


def test_non_finite_errors_mean_diverged() -> None:
    with pytest.raises(DivergedError, match="not finite"):
        measure(config_of("dense", "deep", learning_rates=(1e30,)), Runtime())
