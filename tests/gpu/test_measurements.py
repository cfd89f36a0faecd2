"""Measurements of the same weights on a device and on a CPU, and of a stack and of its trials
alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import tiny_trial as tiny
from tests.support.device_trials import LAYERS, STACKED, trainer_on
from trainables.config import GRADIENT_BOTTLENECK, KL_RANK, PERPLEXITY, SPECTRUM, OutputLayerConfig
from trainables.measurements import measure
from trainables.stack import Stack
from trainables.stack.measuring import measure_stack


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_perplexity_and_singular_values_are_those_on_a_cpu(
    device: str, layer: OutputLayerConfig
) -> None:
    trainers = [trainer_on(name, layer) for name in (device, "cpu")]
    trainers[1].model.load_state_dict(tiny.trained(layer).state_dict())
    trainers[0].model.load_state_dict(trainers[1].model.state_dict())
    here, on_cpu = (
        measure(
            [PERPLEXITY, SPECTRUM], trainer.model, trainer.corpus, trainer.config, trainer.runtime
        )
        for trainer in trainers
    )
    perplexities = [measured[PERPLEXITY].metrics["test_perplexity"] for measured in (here, on_cpu)]
    assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-4)
    sigma, expected = (measured[SPECTRUM].singular_values for measured in (here, on_cpu))
    assert sigma is not None and expected is not None
    np.testing.assert_allclose(sigma, expected, rtol=0, atol=1e-5 * expected[0])


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("contexts", [30, None])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_kl_rank_and_gradient_bottleneck_are_those_on_a_cpu(
    device: str, layer: OutputLayerConfig, contexts: int | None
) -> None:
    """Over fewer contexts than words, too; of weights at their start, with contexts that differ."""
    taken = []
    for name in (device, "cpu"):
        trainer = trainer_on(name, layer)
        trainer.model.embedding_VD.data *= 150
        evaluation = trainer.config.evaluation.model_copy(update={"rank_contexts": contexts})
        config = trainer.config.model_copy(update={"evaluation": evaluation})
        names = [KL_RANK, GRADIENT_BOTTLENECK]
        taken.append(measure(names, trainer.model, trainer.corpus, config, trainer.runtime))
    for name in (KL_RANK, GRADIENT_BOTTLENECK):
        here, on_cpu = (measured[name].metrics for measured in taken)
        assert here == pytest.approx(on_cpu, rel=1e-7, abs=1e-12)
    assert int(taken[0][KL_RANK].metrics["kl_rank_1e-3"]) >= 1


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("contexts", [30, None])
def test_a_stack_measures_what_its_trials_measure_alone(device: str, contexts: int | None) -> None:
    """Over fewer contexts than words, too."""
    trainers = [trainer_on(device, layer, epochs=1, epoch_tokens=600) for layer in STACKED]
    for trainer in trainers:
        evaluation = trainer.config.evaluation.model_copy(update={"rank_contexts": contexts})
        trainer.config = trainer.config.model_copy(update={"evaluation": evaluation})
        tiny.train(trainer)
    trainers = Stack(trainers).trainers
    names = [PERPLEXITY, SPECTRUM]
    for trainer, measured in zip(trainers, measure_stack(names, trainers), strict=True):
        alone = measure(names, trainer.model, trainer.corpus, trainer.config, trainer.runtime)
        assert isinstance(measured, dict), measured
        perplexities = [taken[PERPLEXITY].metrics["test_perplexity"] for taken in (measured, alone)]
        assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-9)
        assert measured[SPECTRUM].metrics["press_rank"] == alone[SPECTRUM].metrics["press_rank"]
        sigma, expected = (taken[SPECTRUM].singular_values for taken in (measured, alone))
        assert sigma is not None and expected is not None
        np.testing.assert_allclose(sigma**2, expected**2, rtol=0, atol=1e-12 * expected[0] ** 2)
