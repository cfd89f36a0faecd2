"""Ranks of log P with centred rows, against numpy's singular values of the matrix as a whole."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support import tiny_trial as tiny
from trainables.config import CENTRED_SPECTRUM, SPECTRUM, GssConfig
from trainables.measurements import RANKS, Spectrum, measure, rank_report
from trainables.runtime import Runtime


def test_ranks_are_numpys_after_centring_rows() -> None:
    corpus, config = tiny.corpus(), tiny.trial(output_layer=GssConfig(c=-1.5, k=2.5))
    model = tiny.spread(config.output_layer)
    measured = measure([CENTRED_SPECTRUM, SPECTRUM], model, corpus, config, Runtime())
    metrics = measured[CENTRED_SPECTRUM].metrics
    log_p = tiny.log_p_matrix(model, corpus.test)
    centred = log_p - log_p.mean(axis=1, keepdims=True)
    sigma = np.linalg.svd(centred, compute_uv=False)
    report = rank_report(Spectrum(sigma, len(log_p), tiny.VOCABULARY, "gram"))
    assert metrics == pytest.approx({f"centred_{name}": report[name] for name in RANKS}, rel=1e-4)
    assert metrics["centred_press_rank"] != measured[SPECTRUM].metrics["press_rank"]
