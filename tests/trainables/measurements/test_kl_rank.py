from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.special import log_softmax, logsumexp
from torch import Tensor

from tests.support import tiny_trial as tiny
from trainables.config import KL_RANK, GssConfig, OutputLayerConfig, SoftmaxConfig
from trainables.measurements import chunks, eigenvectors, measure
from trainables.measurements.kl_rank import (
    BOUNDS,
    FEW_ROWS,
    KlRanks,
    kl_ranks,
)
from trainables.runtime import Runtime

Matrix = NDArray[np.floating]


def bent_log_p(rows: int, columns: int, width: int) -> Matrix:
    random = np.random.default_rng(rows + columns)
    contexts = random.standard_normal((rows, width)) * 2 / width**0.5
    logits = contexts @ random.standard_normal((width, columns)) + random.standard_normal(columns)
    return np.asarray(log_softmax(3 * logits - 2 * np.logaddexp(logits, 0.0), axis=1))


def brute_force(log_p: Matrix, *, until: float = 1e-3) -> list[float]:
    log_p = log_softmax(log_p.astype(np.float64), axis=1)
    left, sigma, right = np.linalg.svd(log_p - log_p.mean(1, keepdims=True), full_matrices=False)
    approximation, curve = np.zeros_like(log_p), list[float]()
    for rank in range(len(sigma) + 1):
        if rank:
            approximation += sigma[rank - 1] * np.outer(left[:, rank - 1], right[rank - 1])
        normaliser = logsumexp(approximation, axis=1, keepdims=True)
        curve.append(float((np.exp(log_p) * (log_p - approximation + normaliser)).sum(1).mean()))
        if curve[-1] <= until:
            break
    return curve


def ranks_of(log_p: Matrix, *, chunk: int = 128) -> KlRanks:
    matrix = torch.tensor(log_p)
    return kl_ranks(lambda: matrix.split(chunk), rows=len(log_p), columns=log_p.shape[1])


def assert_same(log_p: Matrix, ranks: KlRanks) -> None:
    curve = brute_force(log_p)
    for name, rank in ranks.ranks.items():
        assert rank == next(rank for rank, kl in enumerate(curve) if kl <= float(name))
    assert (ranks.rows, ranks.columns) == log_p.shape
    assert {0, ranks.ranks["1e-3"]} <= ranks.curve.keys()
    for rank, kl in ranks.curve.items():
        assert rank >= len(curve) or kl == pytest.approx(curve[rank], rel=1e-8, abs=1e-12)


SHAPES = [(1, 1), (1, 9), (9, 1), (2, 2), (7, 40), (40, 7), (60, 200), (150, 200), (200, 150)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("gpu", [False, True])
def test_ranks_and_curve_equal_numpy(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], dtype: type, gpu: bool
) -> None:
    for module in (chunks, eigenvectors):
        monkeypatch.setattr(module, "on_gpu", lambda _: gpu)
    monkeypatch.setattr(chunks, "PANEL", 7)
    log_p: Matrix = bent_log_p(*shape, 5).astype(dtype)
    assert_same(log_p, ranks_of(log_p))


@pytest.mark.parametrize(
    "shape", [(60, 200), (200, 150), (FEW_ROWS + 100, 90)], ids=["wide", "narrow", "sampled"]
)
def test_noise_has_nearly_full_rank(shape: tuple[int, int]) -> None:
    """In independent noise, all directions matter about equally, so the rank is nearly full."""
    noise = np.random.default_rng(shape[0]).standard_normal(shape)
    log_p: Matrix = log_softmax(noise, axis=1).astype(np.float32)
    ranks = ranks_of(log_p)
    assert_same(log_p, ranks)
    assert 0.9 * min(shape) < ranks.ranks["1e-3"]
    assert 0.4 * min(shape) < ranks.ranks["1e-1"]


def test_sample_limits_the_passes() -> None:
    """The two halves of the rows come from different models, so they need different directions."""
    rows, columns = FEW_ROWS + 100, 60
    log_p = np.concatenate([bent_log_p(rows // 2, columns, 3), bent_log_p(rows // 2, columns, 20)])
    passes = []

    def chunks() -> Iterable[Tensor]:
        passes.append(1)
        return torch.from_numpy(log_p).split(500)

    ranks = kl_ranks(chunks, rows=len(log_p), columns=columns)
    assert_same(log_p, ranks)
    assert len(passes) <= 4, "one pass for the Gram matrix, three for the curve"


def test_equal_rows_need_one_direction() -> None:
    uniform = np.full((30, 8), -np.log(8.0))
    assert ranks_of(uniform).ranks == dict.fromkeys(BOUNDS, 0)
    shares = np.tile(log_softmax(np.arange(8.0)), (30, 1))
    assert ranks_of(shares).ranks == dict.fromkeys(BOUNDS, 1)


@pytest.mark.parametrize(
    ("layer", "rank_contexts"), [(SoftmaxConfig(), None), (GssConfig(c=-1.5, k=2.5), 25)]
)
def test_model_has_its_matrix_ranks(layer: OutputLayerConfig, rank_contexts: int | None) -> None:
    corpus, config = tiny.corpus(), tiny.trial(output_layer=layer)
    model = tiny.spread(layer)
    config = config.with_values({"evaluation.rank_contexts": rank_contexts})
    log_p = tiny.log_p_matrix(model, corpus.test[:rank_contexts])
    [(metrics, _)] = measure([KL_RANK], model, corpus, config, Runtime()).values()
    curve = brute_force(log_p)
    assert metrics["kl_rank_1e-3"] == len(curve) - 1
    assert [metrics["kl_at_rank_0"], metrics["kl_at_rank_1"]] == pytest.approx(curve[:2], rel=1e-9)
    assert len(curve) > 5 and (metrics["kl_rank_rows"], metrics["kl_rank_columns"]) == log_p.shape
