"""Leading eigenvectors against numpy's, on both ways."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from trainables.measurements import eigenvectors
from trainables.measurements.eigenvectors import BLOCK, SymmetricMatrix


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize(
    ("size", "rank"),
    [(1, 1), (3, 1), (BLOCK, BLOCK), (BLOCK + 1, BLOCK), (150, 150), (20, 0)],
)
def test_leading_eigenvectors_are_numpys(
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
    kept = vectors[:, size - rank :]
    leading = decomposed.leading(rank).numpy()
    np.testing.assert_allclose(leading @ leading.T, kept @ kept.T, rtol=0, atol=1e-9)


def test_reflectors_with_nothing_to_do() -> None:
    """Of a diagonal matrix every reflector is the identity."""
    decomposed = SymmetricMatrix(torch.diag(torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64)))
    assert decomposed.eigenvalues_V.tolist() == [3.0, 2.0, 1.0]
    np.testing.assert_allclose(decomposed.leading(2).abs(), [[1, 0], [0, 0], [0, 1]], atol=1e-15)
