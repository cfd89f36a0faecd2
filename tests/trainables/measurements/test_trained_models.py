from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.support import tiny_trial as tiny
from tests.support.tiny_trial import trained
from trainables.config import (
    CENTRED_SPECTRUM,
    SPECTRUM,
    GssConfig,
    LmsPlifConfig,
    MocConfig,
    MosConfig,
    OutputLayerConfig,
    SigSoftmaxConfig,
    SoftmaxConfig,
)
from trainables.language_model import LanguageModel
from trainables.measurements import RANKS, Spectrum, measure, rank_report
from trainables.measurements.ranks import FLOAT32_EPS, press_rank
from trainables.measurements.spectrum import FLOAT64_EPS, matrix_spectrum
from trainables.runtime import Runtime
from trainables.training import mean_loss

D = 8


@torch.no_grad()
def token_by_token(model: LanguageModel, tokens: np.ndarray) -> np.ndarray:
    state, rows = model.zero_state(1), []
    for token in tokens:
        contexts = model.contexts(torch.tensor([[token]]), state)
        state, hidden = contexts.state, contexts.dropped_TBC[0]
        rows.append(model.output.log_probabilities(hidden, model.output_weight()).double())
    return torch.cat(rows).numpy()


@pytest.mark.parametrize(("batch", "window"), [(1, 1), (1, 70), (3, 9)])
def test_perplexity_equals_single_tokens(batch: int, window: int) -> None:
    model, tokens = trained(GssConfig(c=-1.5, k=2.5)), tiny.corpus().test
    losses = []
    for stream in tokens[: len(tokens) // batch * batch].reshape(batch, -1):
        log_p = token_by_token(model, stream)
        losses.append(-log_p[np.arange(len(stream) - 1), stream[1:]])
    loss = mean_loss(model, tokens, batch=batch, window=window)
    assert loss == pytest.approx(np.concatenate(losses).mean(), rel=1e-5)


def exact_rank(model: LanguageModel) -> int:
    log_p = tiny.log_p_matrix(model.double(), tiny.corpus().test)
    return press_rank(matrix_spectrum(log_p, method="qr"), eps=FLOAT64_EPS)


@pytest.mark.parametrize(
    "layer", [SoftmaxConfig(), MocConfig(mixtures=4)], ids=lambda layer: layer.name
)
def test_softmax_has_rank_d_plus_2(layer: OutputLayerConfig) -> None:
    """W h, the bias and the normaliser have rank d + 2 together.

    The tolerance of float32 may hide a part of this rank.
    """
    model = trained(layer)
    rounded = tiny.log_p_matrix(model, tiny.corpus().test)
    assert press_rank(matrix_spectrum(rounded), eps=FLOAT32_EPS) <= D + 2 == exact_rank(model)


@pytest.mark.parametrize(
    "layer",
    [SigSoftmaxConfig(), GssConfig(c=0.0, k=3.0), LmsPlifConfig(knots=1000), MosConfig(mixtures=4)],
    ids=lambda layer: layer.name,
)
def test_other_layers_exceed_softmax_bound(layer: OutputLayerConfig) -> None:
    assert exact_rank(trained(layer)) > D + 2


def test_centred_ranks_equal_numpy() -> None:
    corpus, config = tiny.corpus(), tiny.trial(output_layer=GssConfig(c=-1.5, k=2.5))
    model = tiny.spread(config.output_layer)
    measured = measure([CENTRED_SPECTRUM, SPECTRUM], model, corpus, config, Runtime())
    metrics = measured[CENTRED_SPECTRUM].metrics
    log_p = tiny.log_p_matrix(model, corpus.test)
    centred = log_p - log_p.mean(axis=1, keepdims=True)
    sigma = np.linalg.svd(centred, compute_uv=False)
    report = rank_report(Spectrum(sigma, len(log_p), tiny.VOCABULARY, "gram"))
    assert metrics == pytest.approx({f"centred_{name}": report[name] for name in RANKS}, rel=1e-4)
    plain = measured[SPECTRUM]
    assert plain.singular_values is not None
    assert metrics["centred_press_rank"] != plain.metrics["press_rank"]
    expected = np.linalg.svd(log_p, compute_uv=False)
    np.testing.assert_allclose(plain.singular_values, expected, atol=1e-4)
