"""Models measured as a stack against the same models alone, in float64, and what one's trouble is
to the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from tests.support.device_trials import STACKED
from trainables.config import PERPLEXITY, SPECTRUM, LanguageTrialConfig
from trainables.errors import UserError
from trainables.measurements import measure
from trainables.runtime import Runtime
from trainables.stack import Stack, measuring
from trainables.stack.measuring import measure_stack
from trainables.training import DivergedError, Trainer
from trainables.trial_folder import Measured

pytestmark = pytest.mark.usefixtures("in_float64")

NAMES = (PERPLEXITY, SPECTRUM, "top_k@1", "kl_rank@1", "spectrum_by_epoch@1")
"""The first two are taken of all at once."""


def trained(
    new: Callable[..., LanguageTrialConfig] = tiny.trial, layers: int = 4, **evaluation: Any
) -> list[Trainer]:
    """In the order of a stack, after some steps."""
    trainers = []
    for seed, layer in enumerate(STACKED[:layers]):
        config = new(output_layer=layer, epochs=1, epoch_tokens=600)
        settings = config.evaluation.model_copy(update=evaluation)
        config = config.model_copy(update={"seed": seed, "evaluation": settings})
        trainers.append(Trainer(config, tiny.corpus(), Runtime()))
        tiny.train(trainers[-1])
    return Stack(trainers).trainers


def alone(trainer: Trainer) -> dict[str, Measured]:
    model, epochs = trainer.model, trainer.progress.epochs
    return measure(NAMES, model, trainer.corpus, trainer.config, trainer.runtime, epochs=epochs)


def assert_same(measured: object, expected: dict[str, Measured]) -> None:
    assert isinstance(measured, dict), measured
    sigma, other = measured[SPECTRUM].singular_values, expected[SPECTRUM].singular_values
    assert sigma is not None and other is not None
    # Squares, as zeros come out as roots of what rounding leaves.
    np.testing.assert_allclose(sigma**2, other**2, rtol=0, atol=1e-13 * other[0] ** 2)
    for name in (PERPLEXITY, SPECTRUM):
        assert measured[name].metrics.keys() == expected[name].metrics.keys()
        for key, value in expected[name].metrics.items():
            # The entropy is of all singular values, zeros too.
            near = 1e-6 if key == "entropy_rank" else 1e-9
            known = value if isinstance(value, str) else pytest.approx(value, rel=near)
            assert measured[name].metrics[key] == known, key
    assert [measured[name] for name in NAMES[2:]] == [expected[name] for name in NAMES[2:]]


@pytest.mark.parametrize(
    "evaluation", [{}, {"test_batch_size": 4, "window": 9, "rank_contexts": 30}]
)
@pytest.mark.parametrize("new", [tiny.trial, tiny_transformer.trial])
def test_stack_measures_what_trials_measure_alone(
    new: Callable[..., LanguageTrialConfig],
    evaluation: dict[str, Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also if the memory takes the context vectors of few models at a time."""
    trainers = trained(new, len(STACKED), **evaluation)
    if evaluation:
        monkeypatch.setattr(measuring, "CONTEXT_BYTES", 2 * 4 * 30 * 8)
    for trainer, measured in zip(trainers, measure_stack(NAMES, trainers), strict=True):
        assert_same(measured, alone(trainer))


def test_trouble_of_one_spares_its_mates() -> None:
    trainers = trained()
    trainers[1].model.embedding_VD.data[0, 0] = torch.nan
    trainers[3].corpus = replace(trainers[3].corpus, test=trainers[3].corpus.test[:1])
    measured = measure_stack(NAMES, trainers)
    assert isinstance(measured[1], DivergedError) and isinstance(measured[3], Exception)
    for index in (0, 2):
        assert_same(measured[index], alone(trainers[index]))
    [_, error, *_] = measure_stack([SPECTRUM], trainers)
    assert isinstance(error, UserError) and "finite" in str(error)
