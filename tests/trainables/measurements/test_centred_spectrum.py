"""Ranks of log P with centred rows, against numpy's singular values of the matrix as a whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import tiny_trial as tiny
from trainables.config import CENTRED_SPECTRUM, SPECTRUM, GssConfig
from trainables.measurements import measure
from trainables.measurements.log_probabilities import context_vectors, log_probability_rows
from trainables.runtime import Runtime
from trainables.training import Trainer


def test_ranks_are_numpys_after_centring_rows() -> None:
    corpus, config = tiny.corpus(), tiny.trial(output_layer=GssConfig(c=-1.5, k=2.5))
    model = Trainer(config, corpus, Runtime()).model.eval()
    model.embedding_VD.data *= 150
    measured = measure([CENTRED_SPECTRUM, SPECTRUM], model, corpus, config, Runtime())
    metrics = measured[CENTRED_SPECTRUM].metrics
    log_p = np.concatenate(
        list(log_probability_rows(model, context_vectors(model, corpus.test, window=70)))
    ).astype(float)
    centred = log_p - log_p.mean(axis=1, keepdims=True)
    sigma = np.linalg.svd(centred, compute_uv=False)
    squares, shares = np.cumsum(sigma**2) / np.sum(sigma**2), sigma / sigma.sum()
    tolerance = 0.5 * np.sqrt(sum(log_p.shape) + 1) * sigma[0] * np.finfo(np.float32).eps
    assert metrics["centred_press_rank"] == np.count_nonzero(sigma > tolerance)
    for name in ("1e-3", "1e-4", "1e-5"):
        assert (
            metrics[f"centred_effective_rank_{name}"] == np.argmax(squares >= 1 - float(name)) + 1
        )
    assert metrics["centred_entropy_rank"] == pytest.approx(
        np.exp(-shares @ np.log(shares)), rel=1e-4
    )
    assert metrics["centred_stable_rank"] == pytest.approx(
        np.sum(sigma**2) / sigma[0] ** 2, rel=1e-6
    )
    assert metrics["centred_press_rank"] != measured[SPECTRUM].metrics["press_rank"]
    assert len(metrics) == 6 and measured[CENTRED_SPECTRUM].singular_values is None
