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

from tests.trainables.measurements.test_spectrum import gss_log_p, numpy_svd
from trainables.errors import UserError
from trainables.measurements import gpu_spectrum
from trainables.measurements.gpu_spectrum import gpu_spectra
from trainables.measurements.ranks import press_rank, press_tolerance
from trainables.measurements.spectrum import FLOAT64_EPS, Spectrum, log_p_spectrum, resolution

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
def test_singular_values_are_those_of_numpy_whatever_is_taken_together(
    rows: int, columns: int, count: int, together: int, seed: int
) -> None:
    matrices = list(
        np.random.default_rng(seed).standard_normal((count, rows, columns)).astype(np.float32)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gpu_spectrum, "TOGETHER_BYTES", 8 * together * min(rows, columns) ** 2)
        patch.setattr(gpu_spectrum, "PANEL", 7)
        found = spectra(matrices)
    assert len(found) == count
    for spectrum, matrix in zip(found, matrices, strict=True):
        assert isinstance(spectrum, Spectrum)
        assert (spectrum.rows, spectrum.columns, spectrum.method) == (rows, columns, "gram")
        expected = numpy_svd(matrix)
        assert (
            spectrum.singular_values.dtype == np.float64
            and spectrum.singular_values.shape == expected.shape
        )
        finest = resolution("gram", rows=rows, columns=columns)
        np.testing.assert_allclose(
            spectrum.singular_values, expected, rtol=0, atol=finest * expected[0]
        )
        np.testing.assert_allclose(
            spectrum.singular_values**2, expected**2, rtol=0, atol=1e-12 * expected[0] ** 2
        )


@pytest.mark.parametrize("shape", [(1500, 500), (400, 1500), (500, 600)])
def test_ranks_of_log_p_are_those_of_the_cpus_way_and_of_numpy(shape: tuple[int, int]) -> None:
    log_p = gss_log_p(*shape, seed=1)
    rows, columns = shape
    [found] = spectra([log_p])
    assert isinstance(found, Spectrum)
    other = log_p_spectrum([log_p], rows=rows, columns=columns)
    expected = numpy_svd(log_p)
    above = expected > press_tolerance(expected, rows=rows, columns=columns)
    assert 0 < np.count_nonzero(above) < min(shape), (
        "the spectrum must cross the tolerance for this to be a hard case"
    )
    # Rounding moves squares by eps sqrt(n) of the largest, as `resolution` says: some processors
    # use more of it.
    finest, moved = (
        resolution("gram", rows=rows, columns=columns),
        FLOAT64_EPS * min(shape) ** 0.5 * expected[0] ** 2,
    )
    plain = expected > 1000 * finest * expected[0]
    for truth in (expected, other.singular_values):
        np.testing.assert_allclose(
            found.singular_values[above] ** 2, truth[above] ** 2, rtol=0, atol=moved
        )
        np.testing.assert_allclose(found.singular_values[plain], truth[plain], rtol=1e-7)
    assert press_rank(found) == press_rank(other) == np.count_nonzero(above)


@pytest.mark.parametrize("shape", [(200, 5), (20, 300)])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_the_first_bad_row_of_a_matrix_is_named_and_the_others_are_measured(
    shape: tuple[int, int], bad: float
) -> None:
    matrices = [
        np.random.default_rng(seed).standard_normal(shape).astype(np.float32) for seed in range(3)
    ]
    whole = spectra(matrices)
    matrices[1][[13, 17], 2] = bad
    first, error, last = spectra(matrices)
    assert isinstance(error, UserError) and "row 13 " in str(error)
    for spectrum, expected in ((first, whole[0]), (last, whole[2])):
        assert isinstance(spectrum, Spectrum) and isinstance(expected, Spectrum)
        np.testing.assert_allclose(spectrum.singular_values, expected.singular_values, rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-150, 1e150])
def test_values_that_cannot_be_squared_are_refused(scale: float) -> None:
    [error] = spectra([np.full((9, 4), scale)])
    assert isinstance(error, UserError) and "--method qr" in str(error)


def test_a_matrix_of_zeros_has_rank_0() -> None:
    [spectrum] = spectra([np.zeros((9, 4))])
    assert isinstance(spectrum, Spectrum)
    assert not spectrum.singular_values.any() and press_rank(spectrum) == 0


def test_the_device_is_not_waited_for_between_chunks() -> None:
    """On torch's device without numbers, the first value that is read back ends it."""
    taken = []

    def without_numbers() -> Iterator[Tensor]:
        for number in range(5):
            taken.append(number)
            yield torch.empty(10, 7, device="meta")

    with pytest.raises(NotImplementedError):
        gpu_spectra([without_numbers()], torch.device("meta"), rows=50, columns=7)
    assert len(taken) == 5
