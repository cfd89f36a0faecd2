from __future__ import annotations

import pytest
import torch

from search_spaces.layer_gates import LAYERS, TASKS
from trainables.config import ExpertsLayerConfig, LayerTaskConfig
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
