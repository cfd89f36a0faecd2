"""Measurements on a model: perplexity against a plain loop, the rank of a softmax model's log P
against theory."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.support import tiny_trial as tiny
from tests.support.tiny_trial import trained
from trainables.config import (
    GssConfig,
    LmsPlifConfig,
    MocConfig,
    MosConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
)
from trainables.language_model import LanguageModel
from trainables.measurements.log_probabilities import context_vectors, log_probability_rows
from trainables.measurements.ranks import FLOAT32_EPS, press_rank
from trainables.measurements.registry import measure
from trainables.measurements.spectrum import FLOAT64_EPS, GramSpectrum, QrSpectrum, matrix_spectrum
from trainables.runtime import Runtime
from trainables.training.streams import mean_loss

D = 8


@torch.no_grad()
def token_by_token(model: LanguageModel, tokens: np.ndarray) -> np.ndarray:
    """log P (T x V) after each token of one stream, read one token at a time."""
    state = model.zero_state(1)
    rows = []
    for token in tokens:
        contexts = model.contexts(torch.tensor([[token]]), state)
        state = contexts.state
        rows.append(
            model.output.log_probabilities(contexts.dropped_TBC[0], model.output_weight()).double()
        )
    return torch.cat(rows).numpy()


@pytest.mark.parametrize("window", [1, 7, 70])
def test_perplexity_is_that_of_single_tokens(window: int) -> None:
    model, tokens = trained(GssConfig(c=-1.5, k=2.5)), tiny.corpus().test
    log_p = token_by_token(model, tokens)
    expected = -log_p[np.arange(len(tokens) - 1), tokens[1:]].mean()
    assert mean_loss(model, tokens, batch=1, window=window, split="test") == pytest.approx(
        expected, rel=1e-5
    )


def test_batch_reads_parallel_streams() -> None:
    model, tokens = trained(SoftmaxConfig()), tiny.corpus().valid[:64]
    losses = []
    for stream in np.split(tokens[:63], 3):
        log_p = token_by_token(model, stream)
        losses.append(-log_p[np.arange(20), stream[1:]])
    found = mean_loss(model, tokens, batch=3, window=9, split="valid")
    assert found == pytest.approx(np.concatenate(losses).mean(), rel=1e-5)


def test_row_for_every_context() -> None:
    model, tokens = trained(SigSoftmaxConfig()), tiny.corpus().test
    rows = np.concatenate(
        list(log_probability_rows(model, context_vectors(model, tokens, window=70)))
    )
    assert rows.shape == (len(tokens), tiny.VOCABULARY)
    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, token_by_token(model, tokens), atol=2e-5)


def float64_log_p(model: LanguageModel, tokens: np.ndarray) -> np.ndarray:
    """The log-P matrix of the model in float64, which the model then stays in."""
    double = model.double()
    contexts = context_vectors(double, tokens, window=70)
    rows: np.ndarray = (
        double.output.log_probabilities(contexts, double.output_weight()).detach().numpy()
    )
    return rows


def exact_rank(log_p: np.ndarray) -> int:
    """Press rank with the eps of float64."""
    return press_rank(matrix_spectrum(log_p, method="qr"), eps=FLOAT64_EPS)


@pytest.mark.parametrize(
    "layer", [SoftmaxConfig(), MocConfig(mixtures=4)], ids=lambda layer: layer.name
)
def test_softmax_and_moc_have_rank_d_plus_2(layer: OutputLayerConfig) -> None:
    """W h, the bias and the normaliser: d + 2; float32's tolerance may hide some of it."""
    model, tokens = trained(layer), tiny.corpus().test
    contexts = context_vectors(model, tokens, window=70)
    log_p32 = model.output.log_probabilities(contexts, model.output_weight()).detach().numpy()
    log_p64 = float64_log_p(model, tokens)
    assert exact_rank(log_p64) == D + 2
    assert np.linalg.matrix_rank(log_p64) == D + 2
    for stream in (GramSpectrum(tiny.VOCABULARY), QrSpectrum(tiny.VOCABULARY)):
        stream.update(log_p32)
        assert press_rank(stream.finish(), eps=FLOAT32_EPS) <= D + 2


@pytest.mark.parametrize(
    "layer",
    [SigSoftmaxConfig(), GssConfig(c=0.0, k=3.0), LmsPlifConfig(knots=1000), MosConfig(mixtures=4)],
    ids=lambda layer: layer.name,
)
def test_other_layers_exceed_the_softmax_bound(layer: OutputLayerConfig) -> None:
    assert exact_rank(float64_log_p(trained(layer), tiny.corpus().test)) > D + 2


def test_measurements_by_name() -> None:
    model, corpus, config = trained(SoftmaxConfig()), tiny.corpus(), tiny.trial()
    limited = config.model_copy(
        update={"evaluation": config.evaluation.model_copy(update={"rank_contexts": 100})}
    )
    measured = measure(["perplexity@1", "spectrum@1"], model, corpus, limited, Runtime())
    metrics, singular_values = measured["spectrum@1"]
    assert metrics["rank_rows"] == 100
    assert singular_values is not None
    assert len(singular_values) == tiny.VOCABULARY
    rows = token_by_token(model, corpus.test)[:100]
    np.testing.assert_allclose(
        singular_values[:D], np.linalg.svd(rows, compute_uv=False)[:D], atol=1e-6
    )
    loss = mean_loss(model, corpus.test, batch=1, window=70, split="test")
    assert measured["perplexity@1"].metrics["test_perplexity"] == pytest.approx(math.exp(loss))
