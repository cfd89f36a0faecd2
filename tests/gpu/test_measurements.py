"""Perplexity and spectrum of the same weights on a device and on a CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import tiny_trial as tiny
from tests.support.device_trials import LAYERS, trainer_on
from trainables.config import PERPLEXITY, SPECTRUM, OutputLayerConfig
from trainables.measurements import measure


@pytest.mark.parametrize("layer", LAYERS, ids=lambda layer: layer.name)
def test_perplexity_and_singular_values_are_those_on_a_cpu(device: str, layer: OutputLayerConfig) -> None:
    trainers = [trainer_on(name, layer) for name in (device, "cpu")]
    trainers[1].model.load_state_dict(tiny.trained(layer).state_dict())
    trainers[0].model.load_state_dict(trainers[1].model.state_dict())
    here, on_cpu = (
        measure([PERPLEXITY, SPECTRUM], trainer.model, trainer.corpus, trainer.config, trainer.runtime)
        for trainer in trainers
    )
    perplexities = [measured[PERPLEXITY].metrics["test_perplexity"] for measured in (here, on_cpu)]
    assert perplexities[0] == pytest.approx(perplexities[1], rel=1e-4)
    sigma, expected = (measured[SPECTRUM].singular_values for measured in (here, on_cpu))
    assert sigma is not None and expected is not None
    np.testing.assert_allclose(sigma, expected, rtol=0, atol=1e-5 * expected[0])
