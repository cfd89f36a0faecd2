"""Tests the spectrum computation for GPUs on CPU tensors."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.support import tiny_trial as tiny
from tests.trainables.measurements.test_spectrum import numpy_svd
from trainables.config import SoftmaxConfig
from trainables.errors import UserError
from trainables.measurements import Spectrum, chunks
from trainables.measurements.spectrum import resolution


def spectrum(matrix: NDArray[np.floating], *, centre: bool = False) -> Spectrum:
    rows, columns = matrix.shape
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "on_gpu", lambda _: True)
        patch.setattr(chunks, "PANEL", 7)
        parts = torch.from_numpy(matrix).split(64)
        return chunks.spectrum_of_chunks(parts, rows=rows, columns=columns, centre=centre)


@settings(deadline=None, max_examples=30)
@given(
    rows=st.integers(1, 90),
    columns=st.integers(1, 60),
    centre=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_singular_values_equal_numpy(rows: int, columns: int, centre: bool, seed: int) -> None:
    matrix = np.random.default_rng(seed).standard_normal((rows, columns)).astype(np.float32)
    result = spectrum(matrix, centre=centre)
    assert (result.rows, result.columns, result.method) == (rows, columns, "gram")
    double = matrix.astype(np.float64)
    expected = numpy_svd(double - double.mean(1, keepdims=True) if centre else double)
    finest = resolution("gram", rows=rows, columns=columns)
    scale = float(np.linalg.norm(double, 2))
    sigma = result.singular_values
    np.testing.assert_allclose(sigma, expected, rtol=0, atol=finest * scale)
    np.testing.assert_allclose(sigma**2, expected**2, rtol=0, atol=1e-12 * scale**2)


@pytest.mark.parametrize("shape", [(200, 5), (20, 300)])
@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_first_bad_row_is_named(shape: tuple[int, int], bad: float) -> None:
    matrix = np.ones(shape, dtype=np.float32)
    matrix[[13, 17], 2] = bad
    with pytest.raises(UserError, match="row 13 "):
        spectrum(matrix)


@pytest.mark.parametrize(("free_bytes", "tries"), [(0, 1), (2**40, 2)])
def test_full_gpu_falls_back_to_cpu(
    monkeypatch: pytest.MonkeyPatch, free_bytes: int, tries: int
) -> None:
    for name, value in {"on_gpu": True, "free_bytes": free_bytes, "forget_cache": None}.items():
        monkeypatch.setattr(chunks, name, lambda *_, value=value: value)
    taken = list[int]()

    def rows(matrix: chunks.Chunks) -> int:
        taken.append(sum(map(len, matrix())))
        if len(taken) < tries:
            raise torch.OutOfMemoryError
        return taken[-1]

    model, contexts = tiny.trained(SoftmaxConfig()), torch.zeros(30, 8)
    assert chunks.compute_in_memory(rows, model, contexts, squares=3) == 30
    assert taken == [30] * tries
