"""Ranks of log P with centred rows, against numpy's singular values of the matrix as a whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import tiny_trial as tiny
from trainables.config import CENTRED_SPECTRUM, SPECTRUM, GssConfig
from trainables.measurements import measure
from trainables.runtime import Runtime


def test_ranks_are_numpys_after_centring_rows() -> None:
    corpus, config = tiny.corpus(), tiny.trial(output_layer=GssConfig(c=-1.5, k=2.5))
    model = tiny.spread(config.output_layer)
    measured = measure([CENTRED_SPECTRUM, SPECTRUM], model, corpus, config, Runtime())
    metrics = measured[CENTRED_SPECTRUM].metrics
    log_p = tiny.log_p_matrix(model, corpus.test)
    centred = log_p - log_p.mean(axis=1, keepdims=True)
    sigma = np.linalg.svd(centred, compute_uv=False)
    squares, shares = np.cumsum(sigma**2) / np.sum(sigma**2), sigma / sigma.sum()
    tolerance = 0.5 * np.sqrt(sum(log_p.shape) + 1) * sigma[0] * np.finfo(np.float32).eps
    assert metrics["centred_press_rank"] == np.count_nonzero(sigma > tolerance)
    for name in ("1e-3", "1e-4", "1e-5"):
        count = np.argmax(squares >= 1 - float(name)) + 1
        assert metrics[f"centred_effective_rank_{name}"] == count
    entropy_rank = np.exp(-shares @ np.log(shares))
    assert metrics["centred_entropy_rank"] == pytest.approx(entropy_rank, rel=1e-4)
    stable_rank = np.sum(sigma**2) / sigma[0] ** 2
    assert metrics["centred_stable_rank"] == pytest.approx(stable_rank, rel=1e-6)
    assert metrics["centred_press_rank"] != measured[SPECTRUM].metrics["press_rank"]
