"""The way of a GPU, on a CPU's tensors, against numpy's SVD in float64 and against the CPU's
way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from tests.trainables.measurements.test_spectrum import numpy_svd
from trainables.errors import UserError
from trainables.measurements import gpu_spectrum
from trainables.measurements.gpu_spectrum import gpu_spectra
from trainables.measurements.spectrum import Spectrum, resolution

CPU = torch.device("cpu")


def chunks(matrix: NDArray[np.floating], rows: int = 64) -> list[Tensor]:
    return list(torch.from_numpy(np.ascontiguousarray(matrix)).split(rows))


def spectra(matrices: Sequence[NDArray[np.floating]]) -> list[Spectrum | Exception]:
    rows, columns = matrices[0].shape
    return gpu_spectra([chunks(matrix) for matrix in matrices], CPU, rows=rows, columns=columns)


@settings(deadline=None, max_examples=30)
@given(
    rows=st.integers(1, 90),
    columns=st.integers(1, 60),
    count=st.integers(1, 4),
    together=st.integers(1, 4),
    seed=st.integers(0, 2**32 - 1),
)
def test_singular_values_are_numpys(
    rows: int, columns: int, count: int, together: int, seed: int
) -> None:
    random = np.random.default_rng(seed)
    matrices = list(random.standard_normal((count, rows, columns)).astype(np.float32))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_spectrum, "TOGETHER_BYTES", 8 * together * min(rows, columns) ** 2)
        patch.setattr(gpu_spectrum, "PANEL", 7)
        found = spectra(matrices)
    assert len(found) == count
    for spectrum, matrix in zip(found, matrices, strict=True):
        assert isinstance(spectrum, Spectrum)
        assert (spectrum.rows, spectrum.columns, spectrum.method) == (rows, columns, "gram")
        sigma, expected = spectrum.singular_values, numpy_svd(matrix)
        finest = resolution("gram", rows=rows, columns=columns)
        np.testing.assert_allclose(sigma, expected, rtol=0, atol=finest * expected[0])
        np.testing.assert_allclose(sigma**2, expected**2, rtol=0, atol=1e-12 * expected[0] ** 2)


@pytest.mark.parametrize("shape", [(200, 5), (20, 300)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_first_bad_row_is_named(shape: tuple[int, int], bad: float) -> None:
    matrices = list(np.random.default_rng(0).standard_normal((3, *shape)).astype(np.float32))
    whole = spectra(matrices)
    matrices[1][[13, 17], 2] = bad
    first, error, last = spectra(matrices)
    assert isinstance(error, UserError) and "row 13 " in str(error)
    for spectrum, expected in ((first, whole[0]), (last, whole[2])):
        assert isinstance(spectrum, Spectrum) and isinstance(expected, Spectrum)
        np.testing.assert_allclose(spectrum.singular_values, expected.singular_values, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_values_that_cannot_be_squared(scale: float) -> None:
    [error] = spectra([np.full((9, 4), scale)])
    assert isinstance(error, UserError) and "--method qr" in str(error)


def test_device_is_not_waited_for() -> None:
    """On torch's device without numbers, the first value that is read back ends it."""
    taken = []

    def without_numbers() -> Iterator[Tensor]:
        for number in range(5):
            taken.append(number)
            yield torch.empty(10, 7, device="meta")

    with pytest.raises(NotImplementedError):
        gpu_spectra([without_numbers()], torch.device("meta"), rows=50, columns=7)
    assert len(taken) == 5
