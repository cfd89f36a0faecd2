"""Expected values come from numpy in float64."""

from __future__ import annotations

import copy
from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import expit, log_softmax

from tests.support import tiny_trial as tiny
from tests.trainables.measurements.test_kl_rank import brute_force
from trainables.config import BENT_SOFTMAX, TURNED_SOFTMAX, GssConfig, SoftmaxConfig
from trainables.measurements import context_vectors, matrix_spectrum, measure, press_rank
from trainables.runtime import Runtime
from trainables.trial_folder.metrics import check_metrics

pytestmark = pytest.mark.usefixtures("in_float64")

Array = NDArray[np.float64]
FORMS: dict[str, tuple[tuple[int, ...], Callable[[Array, int], Array]]] = {
    "tanh": ((5, 10, 15, 20, 30), lambda x, cap: cap * np.tanh(x / cap)),
    "sigmoid": ((5, 10, 15, 20, 23, 30), lambda x, cap: cap * expit((x * 23 / cap + 5) / 7.5)),
}


def mean_kl(log_p: Array, log_q: Array) -> float:
    return float((np.exp(log_p) * (log_p - log_q)).sum(1).mean())


def test_every_bend_equals_numpy() -> None:
    rank_contexts = 60
    corpus, config = tiny.corpus(), tiny.trial(output_layer=SoftmaxConfig())
    config = config.with_values({"evaluation.rank_contexts": rank_contexts})
    model = tiny.spread(SoftmaxConfig())
    before = copy.deepcopy(model.state_dict())
    hidden = context_vectors(model, corpus.test, window=70).numpy()
    logits = hidden @ before["embedding_VD"].numpy().T + before["output.bias_V"].numpy()
    assert np.abs(logits).max() > 5, "logits must exceed the smaller caps"
    metrics = measure([BENT_SOFTMAX], model, corpus, config, Runtime())[BENT_SOFTMAX].metrics
    check_metrics(metrics)
    expected = dict[str, float]()
    log_p = log_softmax(logits, axis=1)[:rank_contexts]
    for form, (caps, bend) in FORMS.items():
        for cap in caps:
            log_q = log_softmax(bend(logits, cap), axis=1)
            loss = -log_q[np.arange(len(log_q) - 1), corpus.test[1:]].mean()
            ranked = log_q[:rank_contexts]
            expected |= {
                f"bent {form} {cap} test_perplexity": float(np.exp(loss)),
                f"bent {form} {cap} press_rank": press_rank(matrix_spectrum(ranked)),
                f"bent {form} {cap} kl_rank_1e-2": len(brute_force(ranked, until=0.01)) - 1,
                f"bent {form} {cap} kl_from_softmax": mean_kl(log_p, ranked),
            }
    assert metrics == pytest.approx(expected, rel=1e-9)
    ranks = [int(metrics[f"bent tanh {cap} press_rank"]) for cap in (5, 15, 30)]
    assert ranks[0] > ranks[2] > 10, "a softmax of width 8 has rank 10"
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert [name for name, _ in model.output.named_modules() if name] == ["function"]


def test_other_layers_are_not_bent() -> None:
    config = tiny.trial(output_layer=GssConfig(c=-1.5, k=2.5))
    model = tiny.spread(config.output_layer)
    measurements = measure([BENT_SOFTMAX], model, tiny.corpus(), config, Runtime())
    assert measurements == {BENT_SOFTMAX: ({}, None)}


def test_turned_softmax_equals_numpy() -> None:
    corpus, config = tiny.corpus(), tiny.trial(output_layer=SoftmaxConfig())
    model = tiny.spread(SoftmaxConfig())
    hidden = context_vectors(model, corpus.test, window=70).numpy()
    weights = model.state_dict()
    logits = hidden @ weights["embedding_VD"].numpy().T + weights["output.bias_V"].numpy()
    found = measure([BENT_SOFTMAX, TURNED_SOFTMAX], model, corpus, config, Runtime())
    turned = found[TURNED_SOFTMAX].metrics
    for eps in (0.01, 0.1, 1):
        log_q = log_softmax((logits + eps * np.logaddexp(0, logits)) / (1 + eps), axis=1)
        name = f"turned softplus {eps:g}"
        kl = mean_kl(log_softmax(logits, axis=1), log_q)
        assert turned[f"{name} kl_from_softmax"] == pytest.approx(kl, rel=1e-6, abs=1e-12)
        assert turned[f"{name} press_rank"] == press_rank(matrix_spectrum(log_q))
    assert not turned.keys() & found[BENT_SOFTMAX].metrics.keys()
