"""Models measured as a stack against the same models alone, in float64, and what one's trouble is
to the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.support import tiny_transformer
from tests.support import tiny_trial as tiny
from tests.support.device_trials import STACKED
from trainables.config import PERPLEXITY, SPECTRUM, LanguageTrialConfig, OutputLayerConfig
from trainables.errors import UserError
from trainables.measurements import gpu_spectrum, measure, measure_stack, registry, stacked
from trainables.runtime import Runtime
from trainables.stack import Stack
from trainables.training import DivergedError, Trainer
from trainables.trial_folder import Measured

NAMES = (PERPLEXITY, SPECTRUM, "top_k@1")
ONE_BY_ONE = (
    "kl_rank@1",
    "gradient_bottleneck@1",
    "spectrum_by_epoch@1",
    "bent_softmax@1",
    "centred_spectrum@1",
)


@pytest.fixture(autouse=True)
def _in_float64() -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(before)


def lstm(layer: OutputLayerConfig) -> LanguageTrialConfig:
    return tiny.trial(output_layer=layer, epochs=1, epoch_tokens=600, learning_rate=20.0)


def transformer(layer: OutputLayerConfig) -> LanguageTrialConfig:
    return tiny_transformer.trial(output_layer=layer, epochs=1, epoch_tokens=600)


def trained(
    layers: Sequence[OutputLayerConfig] = STACKED,
    new: Callable[[OutputLayerConfig], LanguageTrialConfig] = lstm,
    **evaluation: Any,
) -> list[Trainer]:
    """In the order of a stack, after some steps."""
    trainers = []
    for seed, layer in enumerate(layers):
        config = new(layer)
        settings = config.evaluation.model_copy(update=evaluation)
        config = config.model_copy(update={"seed": seed, "evaluation": settings})
        trainers.append(Trainer(config, tiny.corpus(), Runtime()))
        tiny.train(trainers[-1])
    return Stack(trainers).trainers


def alone(trainer: Trainer) -> dict[str, Measured]:
    return measure(NAMES, trainer.model, trainer.corpus, trainer.config, trainer.runtime)


def assert_same(measured: object, expected: dict[str, Measured]) -> None:
    assert isinstance(measured, dict), measured
    assert list(measured) == list(expected)
    sigma, other = measured[SPECTRUM].singular_values, expected[SPECTRUM].singular_values
    assert sigma is not None and other is not None
    # Squares, as zeros come out as roots of what rounding leaves.
    np.testing.assert_allclose(sigma**2, other**2, rtol=0, atol=1e-13 * other[0] ** 2)
    for name in (PERPLEXITY, SPECTRUM):
        metrics = measured[name].metrics
        assert metrics.keys() == expected[name].metrics.keys()
        for key, value in expected[name].metrics.items():
            # The entropy is of all singular values, zeros too.
            near = 1e-6 if key == "entropy_rank" else 1e-9
            assert metrics[key] == (
                value if isinstance(value, str) else pytest.approx(value, rel=near)
            ), key
    assert measured["top_k@1"] == expected["top_k@1"]


@pytest.mark.parametrize(
    "evaluation", [{}, {"test_batch_size": 4, "window": 9}, {"rank_contexts": 30}]
)
@pytest.mark.parametrize("new", [lstm, transformer])
def test_a_stack_measures_what_its_trials_measure_alone(
    new: Callable[[OutputLayerConfig], LanguageTrialConfig], evaluation: dict[str, Any]
) -> None:
    trainers = trained(new=new, **evaluation)
    for trainer, measured in zip(trainers, measure_stack(NAMES, trainers), strict=True):
        assert_same(measured, alone(trainer))


@pytest.mark.parametrize("new", [lstm, transformer])
def test_what_has_no_way_for_a_stack_is_taken_one_by_one(
    new: Callable[[OutputLayerConfig], LanguageTrialConfig],
) -> None:
    trainers = trained(STACKED[:3], new)
    for trainer, measured in zip(trainers, measure_stack(ONE_BY_ONE, trainers), strict=True):
        epochs = trainer.progress.epochs
        alone = measure(
            ONE_BY_ONE,
            trainer.model,
            trainer.corpus,
            trainer.config,
            trainer.runtime,
            epochs=epochs,
        )
        assert measured == alone


def test_trials_are_measured_on_as_much_text_as_their_configs_say() -> None:
    trainers = (
        trained(STACKED[:2])
        + trained(STACKED[:2], rank_contexts=100)
        + trained(STACKED[:1], test_tokens=90)
    )
    trainers = Stack(trainers).trainers
    measured = measure_stack(NAMES, trainers)
    rows = [
        result[SPECTRUM].metrics["rank_rows"] for result in measured if isinstance(result, dict)
    ]
    assert sorted(map(int, rows)) == [90, 100, 100, 400, 400]
    for trainer, result in zip(trainers, measured, strict=True):
        assert_same(result, alone(trainer))


def test_context_vectors_of_few_models_are_kept_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    trainers = trained(STACKED[:3])
    monkeypatch.setattr(stacked, "CONTEXT_BYTES", 2 * 4 * 400 * 8)
    for trainer, measured in zip(trainers, measure_stack(NAMES, trainers), strict=True):
        assert_same(measured, alone(trainer))


@pytest.mark.parametrize("rank_contexts", [30, 400])
def test_a_gpus_way_gives_the_same(monkeypatch: pytest.MonkeyPatch, rank_contexts: int) -> None:
    trainers = trained(STACKED[:4], rank_contexts=rank_contexts)
    expected = [alone(trainer) for trainer in trainers]
    sizes = []
    eigenvalues = torch.linalg.eigvalsh

    def heard(squares: torch.Tensor) -> torch.Tensor:
        sizes.append(len(squares))
        return eigenvalues(squares)

    monkeypatch.setattr(registry, "fits_gpu", lambda *_, **__: True)
    monkeypatch.setattr(
        gpu_spectrum, "TOGETHER_BYTES", 3 * 8 * min(rank_contexts, tiny.VOCABULARY) ** 2
    )
    monkeypatch.setattr(torch.linalg, "eigvalsh", heard)
    for measured, other in zip(measure_stack(NAMES, trainers), expected, strict=True):
        assert_same(measured, other)
    assert sizes == [3, 1]


def test_the_trouble_of_one_is_not_that_of_its_mates() -> None:
    trainers = trained(STACKED[:4])
    trainers[1].model.embedding_VD.data[0, 0] = torch.nan
    measured = measure_stack(NAMES, trainers)
    assert isinstance(measured[1], DivergedError)
    for index in (0, 2, 3):
        assert_same(measured[index], alone(trainers[index]))
    [first, error, *_] = measure_stack([SPECTRUM], trainers)
    assert isinstance(first, dict)
    assert isinstance(error, UserError) and "finite" in str(error)


def test_a_measurement_without_a_way_for_stacks_fails_for_whom_it_fails() -> None:
    trainers = trained(STACKED[:2])
    trainers[0].corpus = replace(trainers[0].corpus, test=trainers[0].corpus.test[:1])
    measured = measure_stack(["top_k@1"], trainers)
    assert isinstance(measured[0], Exception)
    assert measured[1] == {"top_k@1": alone(trainers[1])["top_k@1"]}


def test_where_a_gpu_has_no_memory_after_all_the_cpu_takes_the_spectrum(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trainers = trained(STACKED[:2])
    expected = [alone(trainer) for trainer in trainers]
    calls = []

    def eigenvalues(square: torch.Tensor) -> torch.Tensor:
        calls.append(square.shape)
        raise torch.OutOfMemoryError

    monkeypatch.setattr(registry, "fits_gpu", lambda *_, **__: True)
    monkeypatch.setattr("torch.linalg.eigvalsh", eigenvalues)
    for measured, alone_measured in zip(measure_stack(NAMES, trainers), expected, strict=True):
        assert_same(measured, alone_measured)
    assert calls
