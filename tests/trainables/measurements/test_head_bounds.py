from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import log_softmax

from tests.support.checkpoints import head
from trainables.measurements import kl_bounds, log_p_rank_bound

Matrix = NDArray[np.float64]


def in_blocks(matrix: Matrix, rows: int = 7) -> Callable[[], Iterator[Matrix]]:
    return lambda: (matrix[start : start + rows] for start in range(0, len(matrix), rows))


def divergence(logits: Matrix, cut: Matrix) -> Matrix:
    log_p, log_q = log_softmax(logits, axis=1), log_softmax(cut, axis=1)
    return np.sum(np.exp(log_p) * (log_p - log_q), axis=1)


def cut(weights: Matrix, rank: int) -> Matrix:
    left, sigma, right = np.linalg.svd(weights - weights.mean(axis=0), full_matrices=False)
    return (left[:, :rank] * sigma[:rank]) @ right[:rank]


def contexts(error: Matrix, norm: float, random: np.random.Generator) -> Matrix:
    differences = (error[:, None] - error[None]).reshape(-1, error.shape[1])
    worst = differences[np.argsort(np.linalg.norm(differences, axis=1))[-20:]]
    drawn = random.standard_normal((200, error.shape[1]))
    directions = np.concatenate([drawn, worst, np.linalg.svd(error)[2]])
    directions = directions[directions.any(axis=1)]
    return norm * directions / np.linalg.norm(directions, axis=1, keepdims=True)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [(40, 6), (12, 12), (5, 9), (90, 3)])
def test_no_context_exceeds_the_bound(seed: int, shape: tuple[int, int]) -> None:
    random = np.random.default_rng(seed)
    weights = head(*shape, seed=seed, decay=10.0 ** -random.integers(0, 4))
    weights *= random.choice([0.02, 0.3, 3])
    weights += 5 * random.standard_normal(
        shape[1]
    )  # a constant for all words, which the softmax ignores
    gain, bias = random.normal(1, 0.5, shape[1]), random.normal(size=shape[0])
    norm = random.choice([0.3, shape[1] ** 0.5])
    bounds = kl_bounds(in_blocks(weights), gain_D=gain, norm=norm)
    full = weights * gain
    assert len(bounds) == 1 + min(shape) and bounds[-1] == 0 and (np.diff(bounds) <= 0).all()
    for rank, bound in enumerate(bounds):
        error = full - full.mean(axis=0) - cut(full, rank)
        x = contexts(error, norm, random)
        logits, cut_logits = x @ full.T + bias, x @ cut(full, rank).T + bias
        for nats in (divergence(logits, cut_logits), divergence(cut_logits, logits)):
            assert nats.max() <= bound * (1 + 1e-9) + 1e-11


@pytest.mark.parametrize("shape", [(200, 16), (16, 200), (30, 30)])
@pytest.mark.parametrize("rows", [1, 7, 1000])
def test_the_bound_is_its_formula(shape: tuple[int, int], rows: int) -> None:
    weights, gain, norm = head(*shape, decay=0.01) + 3, np.linspace(-1, 2, shape[1]), 1.7
    full = (weights - weights.mean(axis=0)) * gain
    left, sigma, _ = np.linalg.svd(full, full_matrices=False)
    expected = []
    for rank in range(min(shape)):
        outside = np.sort(np.linalg.norm((left * sigma)[:, rank:], axis=1))
        expected.append((norm * min(2**0.5 * sigma[rank], outside[-1] + outside[-2])) ** 2 / 8)
    bounds = kl_bounds(in_blocks(weights, rows), gain_D=gain, norm=norm)
    # With at least as many dimensions as words, the last direction of centred words is only
    # rounding.
    assert bounds[:-1] == pytest.approx(expected, rel=1e-7, abs=1e-10)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("words", "width"), [(40, 6), (7, 6), (6, 6)])
def test_log_p_rank_follows_bound(words: int, width: int, bias: bool) -> None:
    random = np.random.default_rng(0)
    logits = random.standard_normal((100, width)) @ head(words, width).T
    logits += bias * random.standard_normal(words)
    expected = log_p_rank_bound(words, width, bias=bias)
    assert np.linalg.matrix_rank(log_softmax(logits, axis=1)) == expected
