from __future__ import annotations

import numpy as np
import pytest

from tests.support import tiny_trial as tiny
from tests.support.device_trials import COMPARED, trainer_on
from trainables.config import GRADIENT_BOTTLENECK, KL_RANK, PERPLEXITY, SPECTRUM, OutputLayerConfig
from trainables.measurements import measure


@pytest.mark.parametrize("layer", COMPARED, ids=lambda layer: layer.name)
def test_perplexity_and_spectrum_equal_cpu(device: str, layer: OutputLayerConfig) -> None:
    weights, taken = tiny.trained(layer).state_dict(), []
    for name in (device, "cpu"):
        trainer = trainer_on(name, layer)
        trainer.model.load_state_dict(weights)
        names = [PERPLEXITY, SPECTRUM]
        taken.append(measure(names, trainer.model, trainer.corpus, trainer.config, trainer.runtime))
    here, on_cpu = (measured[PERPLEXITY].metrics["test_perplexity"] for measured in taken)
    assert here == pytest.approx(on_cpu, rel=1e-4)
    sigma, expected = (measured[SPECTRUM].singular_values for measured in taken)
    assert sigma is not None and expected is not None
    np.testing.assert_allclose(sigma, expected, rtol=0, atol=1e-5 * expected[0])


@pytest.mark.usefixtures("in_float64")
@pytest.mark.parametrize("contexts", [30, None])
@pytest.mark.parametrize("layer", COMPARED, ids=lambda layer: layer.name)
def test_kl_rank_and_bottleneck_equal_cpu(
    device: str, layer: OutputLayerConfig, contexts: int | None
) -> None:
    taken = []
    for name in (device, "cpu"):
        trainer = trainer_on(name, layer)
        # With small weights, all contexts would give nearly the same probabilities.
        trainer.model.embedding_VD.data *= 150
        config = trainer.config.with_values({"evaluation.rank_contexts": contexts})
        names = [KL_RANK, GRADIENT_BOTTLENECK]
        taken.append(measure(names, trainer.model, trainer.corpus, config, trainer.runtime))
    for name in (KL_RANK, GRADIENT_BOTTLENECK):
        here, on_cpu = (measured[name].metrics for measured in taken)
        assert here == pytest.approx(on_cpu, rel=1e-7, abs=1e-12)
    assert int(taken[0][KL_RANK].metrics["kl_rank_1e-3"]) >= 1
