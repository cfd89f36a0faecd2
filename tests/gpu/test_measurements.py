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
from trainables.training import Trainer
from trainables.trial_folder import Measured

NAMES = (PERPLEXITY, SPECTRUM)


def measured(trainer: Trainer) -> dict[str, Measured]:
    return measure(NAMES, trainer.model, trainer.corpus, trainer.config, trainer.runtime)


def assert_near(
    found: dict[str, Measured],
    other: dict[str, Measured],
    near: float,
    power: int,
    of_powers: float,
) -> None:
    """Perplexities by `near`, and this power of the singular values by that of the largest one."""
    perplexity = pytest.approx(other[PERPLEXITY].metrics["test_perplexity"], rel=near)
    assert found[PERPLEXITY].metrics["test_perplexity"] == perplexity
    sigma, expected = (taken[SPECTRUM].singular_values for taken in (found, other))
    assert sigma is not None and expected is not None
    bound = of_powers * expected[0] ** power
    np.testing.assert_allclose(sigma**power, expected**power, rtol=0, atol=bound)


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_perplexity_and_spectrum_are_those_on_a_cpu(device: str, layer: OutputLayerConfig) -> None:
    trainers = [trainer_on(name, layer) for name in (device, "cpu")]
    trainers[1].model.load_state_dict(tiny.trained(layer).state_dict())
    trainers[0].model.load_state_dict(trainers[1].model.state_dict())
    here, on_cpu = map(measured, trainers)
    assert_near(here, on_cpu, 1e-4, 1, 1e-5)


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("contexts", [30, None])
@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_kl_rank_and_bottleneck_are_those_on_a_cpu(
    device: str, layer: OutputLayerConfig, contexts: int | None
) -> None:
    """Over fewer contexts than words, too; of weights at their start, with contexts that differ."""
    taken = []
    for name in (device, "cpu"):
        trainer = trainer_on(name, layer)
        trainer.model.embedding_VD.data *= 150
        config = trainer.config.with_values({"evaluation.rank_contexts": contexts})
        names = [KL_RANK, GRADIENT_BOTTLENECK]
        taken.append(measure(names, trainer.model, trainer.corpus, config, trainer.runtime))
    for name in (KL_RANK, GRADIENT_BOTTLENECK):
        here, on_cpu = (measured[name].metrics for measured in taken)
        assert here == pytest.approx(on_cpu, rel=1e-7, abs=1e-12)
    assert int(taken[0][KL_RANK].metrics["kl_rank_1e-3"]) >= 1


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("contexts", [30, None])
def test_a_stack_measures_what_trials_measure(device: str, contexts: int | None) -> None:
    """Over fewer contexts than words, too."""
    trainers = [trainer_on(device, layer, epochs=1, epoch_tokens=600) for layer in STACKED]
    for trainer in trainers:
        trainer.config = trainer.config.with_values({"evaluation.rank_contexts": contexts})
        tiny.train(trainer)
    trainers = Stack(trainers).trainers
    for trainer, together in zip(trainers, measure_stack(NAMES, trainers), strict=True):
        assert isinstance(together, dict), together
        alone = measured(trainer)
        assert_near(together, alone, 1e-9, 2, 1e-12)
        assert together[SPECTRUM].metrics["press_rank"] == alone[SPECTRUM].metrics["press_rank"]
