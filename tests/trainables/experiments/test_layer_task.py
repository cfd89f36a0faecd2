"""The benchmark of hidden layers: equal parameter counts, known functions, the same data for every
layer."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from search_spaces.layer_gates import LAYERS, STUDY, TASKS
from trainables.config import CorpusConfig, ExpertsLayerConfig, LayerTaskConfig
from trainables.draws import stream
from trainables.experiments import layer_task
from trainables.experiments.layer_task import (
    BATCHES,
    REGIONS,
    TASK,
    WEIGHTS,
    make_function,
    make_network,
    make_task,
    measure,
)
from trainables.runtime import Runtime
from trainables.training import DivergedError

NO_CORPUS = CorpusConfig(name="none", sha256="0" * 64)
SMALL = {"train_examples": 400, "valid_examples": 200, "test_examples": 200, "steps": 60}


def config_of(layer: str, task: str, **changes: object) -> LayerTaskConfig:
    width, hidden = LAYERS[layer]
    base = LayerTaskConfig(seed=1, task="deep", layer=hidden, width=width, **SMALL)
    return base.model_copy(update={"task": task, **changes})


def test_all_networks_of_the_study_have_exactly_as_many_parameters_and_a_config_knows_them() -> (
    None
):
    layer = ExpertsLayerConfig(experts=3, gate_for="unit")
    configs = [
        *STUDY.trials(NO_CORPUS),
        LayerTaskConfig(seed=1, task="wide", layer=layer, width=7, input_width=5),
    ]
    counts = []
    for config in configs:
        assert isinstance(config, LayerTaskConfig)
        if config.seed == 1:
            counts.append(
                sum(
                    parameter.numel()
                    for parameter in make_network(config, torch.Generator()).parameters()
                )
            )
            assert config.parameters == counts[-1]
    assert set(counts[:-1]) == {3172}


@pytest.mark.parametrize("task", TASKS)
def test_layers_get_the_same_task_at_a_seed_and_another_at_another(task: str) -> None:
    dense, gated = (make_task(config_of(layer, task)) for layer in ("dense", "softmax gates"))
    for a, b in zip(dense, gated, strict=True):
        assert torch.equal(a.inputs_NI, b.inputs_NI) and torch.equal(a.targets_NO, b.targets_NO)
    train, _, test = dense
    assert not torch.equal(train.inputs_NI[:200], test.inputs_NI)
    other, _, _ = make_task(config_of("dense", task, seed=2))
    assert not torch.equal(other.targets_NO, train.targets_NO)
    assert torch.allclose(train.targets_NO.var(dim=0), torch.ones(4), atol=0.35), (
        "outputs have variance 1"
    )


def test_regions_apply_one_of_eight_linear_maps() -> None:
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
        # Least squares on one region leaves nothing: the function is linear there.
        left = torch.linalg.lstsq(inside_NI, function(inside_NI)).solution
        torch.testing.assert_close(inside_NI @ left, function(inside_NI), rtol=0, atol=1e-3)


def test_the_function_itself_has_error_0_and_its_mean_error_1() -> None:
    _, _, test = make_task(config_of("dense", "wide"))
    assert layer_task._error(lambda _: test.targets_NO, test) == 0
    assert layer_task._error(lambda _: test.targets_NO.mean(dim=0), test) == pytest.approx(
        1, rel=1e-5
    )


def test_a_layer_that_can_be_the_function_learns_it() -> None:
    """The task wide is a dense layer of 64 units: 88 find it, closer than a straight line ever
    comes."""
    config = config_of("dense", "wide", train_examples=5_000, steps=600, learning_rates=(1e-2,))
    [found] = measure(config, Runtime()).values()
    train, _, test = make_task(config)
    line = torch.linalg.lstsq(train.inputs_NI, train.targets_NO).solution
    straight = float(
        (test.inputs_NI @ line - test.targets_NO).square().mean() / test.targets_NO.var()
    )
    assert float(found.metrics["test_error_percent"]) < 50 * straight
    assert found.metrics["parameters"] == 3172


def test_the_learning_rate_of_the_lowest_validation_error_counts() -> None:
    config = config_of("softmax gates", "deep", learning_rates=(1e-5, 1e-2))
    [both] = measure(config, Runtime()).values()
    alone = [
        measure(config.model_copy(update={"learning_rates": (rate,)}), Runtime())
        for rate in (1e-5, 1e-2)
    ]
    slow, fast = (found["layer_task@2"].metrics for found in alone)
    assert float(slow["validation_error_percent"]) > float(fast["validation_error_percent"])
    assert both.metrics == fast, "the same bits as when it was the only one"


def test_errors_that_are_not_finite_are_a_diverged_trial() -> None:
    with pytest.raises(DivergedError, match="not finite"):
        measure(config_of("dense", "deep", learning_rates=(1e30,)), Runtime())


def test_task_weights_and_batches_are_independent_streams_of_a_seed() -> None:
    """torch's generator takes seed and seed + 2^32 for the same: its low 32 bits are all that it
    looks at."""
    seeds = (1, 2, 1 + 2**32, 7 * 2**32 + 1)
    drawn = [
        torch.randn(4_000, generator=stream(seed, part))
        for seed in seeds
        for part in (TASK, WEIGHTS, BATCHES)
    ]
    for a, b in itertools.combinations(drawn, 2):
        # Of independent values the correlation has a standard deviation of 1 / sqrt(4000) = 0.016.
        assert abs(float(np.corrcoef(a, b)[0, 1])) < 0.07
    assert torch.equal(drawn[0], torch.randn(4_000, generator=stream(1, TASK)))


@pytest.mark.parametrize("name", ["train_examples", "valid_examples", "test_examples"])
def test_one_example_has_no_variance_to_measure_errors_by(name: str) -> None:
    with pytest.raises(ValidationError, match="greater than or equal to 2"):
        config_of("dense", "wide", **{name: 1})
    assert getattr(config_of("dense", "wide", **{name: 2}), name) == 2
