from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from scipy.linalg import svd

from trainables.measurements import eigenvalues, eigenvectors
from trainables.measurements.eigenvectors import BLOCK as REFLECTORS
from trainables.measurements.eigenvectors import SymmetricMatrix
from trainables.pulse import repeated

EPS = np.finfo(np.float64).eps
SIZES = [1, 2, 3, 100, 600]


def only_lower(symmetric_VV: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return a Fortran-ordered copy with NaN in the half that must not be read."""
    copy_VV = np.array(symmetric_VV, order="F")
    copy_VV[np.triu_indices(len(copy_VV), 1)] = np.nan
    return copy_VV


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("rank_share", [1.0, 0.3])
def test_agrees_with_svd_of_the_factor(size: int, rank_share: float) -> None:
    random = np.random.default_rng(size)
    factor = random.standard_normal((max(1, int(rank_share * size)), size))
    gram_VV = factor.T @ factor
    truth = np.zeros(size)
    truth[-len(factor) :] = svd(factor, compute_uv=False)[::-1] ** 2
    values = eigenvalues(only_lower(gram_VV))
    assert np.abs(values - truth).max() < 10 * EPS * np.sqrt(size) * truth[-1]


def test_heartbeats_go_on_meanwhile() -> None:
    matrix, beats = np.asfortranarray(np.diag(np.arange(1200.0)) + 1), itertools.count()
    with repeated(lambda: next(beats), 0.001):
        time.sleep(0.1)
        before = next(beats)
        eigenvalues(matrix)
        assert next(beats) > before + 9


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize(
    ("size", "rank"),
    [(1, 1), (3, 1), (REFLECTORS, REFLECTORS), (REFLECTORS + 1, REFLECTORS), (150, 150), (20, 0)],
)
def test_leading_eigenvectors_equal_numpy(
    monkeypatch: pytest.MonkeyPatch, size: int, rank: int, gpu: bool
) -> None:
    monkeypatch.setattr(eigenvectors, "on_gpu", lambda _: gpu)
    factor = np.random.default_rng(size).standard_normal((size, rank))
    matrix = factor @ factor.T
    lower = np.array(np.tril(matrix), order="F")
    decomposed = SymmetricMatrix(torch.from_numpy(matrix.copy() if gpu else lower))
    values, vectors = np.linalg.eigh(matrix)
    near = 1e-12 * max(1.0, values[-1])
    np.testing.assert_allclose(decomposed.eigenvalues_V, values[::-1], rtol=0, atol=near)
    for count in {0, 1, rank, size}:
        leading = decomposed.leading(count).numpy()
        assert leading.shape == (size, count)
        np.testing.assert_allclose(leading.T @ leading, np.eye(count), rtol=0, atol=1e-11)
        np.testing.assert_allclose(
            matrix @ leading, leading * decomposed.eigenvalues_V[:count], rtol=0, atol=near
        )
    truth = vectors[:, size - rank :]
    leading = decomposed.leading(rank).numpy()
    np.testing.assert_allclose(leading @ leading.T, truth @ truth.T, rtol=0, atol=1e-9)
