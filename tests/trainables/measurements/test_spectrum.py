from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.special import log_softmax

from trainables.errors import UserError
from trainables.measurements.ranks import press_rank, press_tolerance
from trainables.measurements.spectrum import (
    Method,
    SpectrumStream,
    log_p_spectrum,
    matrix_spectrum,
    resolution,
)

METHODS: tuple[Method, ...] = ("gram", "qr")
every_method = pytest.mark.parametrize("method", METHODS)


def gss_log_p(rows: int, columns: int, *, seed: int) -> NDArray[np.float64]:
    random, c, k = np.random.default_rng(seed), -1.0, 1.25
    weight = random.standard_normal((columns, 16)) * 0.6 / 4
    logits = random.standard_normal((rows, 16)) @ weight.T + random.standard_normal(columns) - c
    return np.asarray(log_softmax(k * logits - (k - 1) * np.logaddexp(logits, 0.0), axis=1))


def numpy_svd(matrix: NDArray[Any]) -> NDArray[np.float64]:
    return np.linalg.svd(matrix.astype(np.float64), compute_uv=False)


@every_method
@settings(deadline=None, max_examples=40)
@given(
    rows=st.integers(1, 60),
    columns=st.integers(1, 40),
    cuts=st.lists(st.integers(0, 100), max_size=6),
    block=st.integers(1, 60),
    seed=st.integers(0, 2**32 - 1),
)
def test_singular_values_equal_numpy(
    method: Method, rows: int, columns: int, cuts: list[int], block: int, seed: int
) -> None:
    matrix = np.random.default_rng(seed).uniform(-12, 0, (rows, columns))
    expected = numpy_svd(matrix)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("trainables.measurements.spectrum.BLOCK_BYTES", 8 * columns * block)
        pieces = np.split(
            matrix, sorted({1 + cut % (rows - 1) for cut in cuts} if rows > 1 else ())
        )
        result = log_p_spectrum(pieces, rows=rows, columns=columns, method=method)
    assert (result.rows, result.columns, result.method) == (rows, columns, method)
    sigma = result.singular_values
    assert (np.diff(sigma) <= 0).all()
    # The Gram matrix has squared singular values, precise relative to the largest one.
    power = 2 if method == "gram" else 1
    near = 1e-13 * expected[0] ** power
    np.testing.assert_allclose(sigma**power, expected**power, rtol=0, atol=near)


@pytest.mark.parametrize("shape", [(2000, 600), (600, 2000)])
@pytest.mark.parametrize("seed", range(3))
def test_gram_above_the_press_tolerance(shape: tuple[int, int], seed: int) -> None:
    log_p = gss_log_p(*shape, seed=seed)
    expected = numpy_svd(log_p)
    resolved = expected > press_tolerance(expected, rows=shape[0], columns=shape[1])
    assert 0 < np.count_nonzero(resolved) < min(shape), (
        "some singular values must be below the tolerance"
    )
    spectrum = matrix_spectrum(log_p)
    np.testing.assert_allclose(spectrum.singular_values[resolved], expected[resolved], rtol=1e-6)
    assert press_rank(spectrum) == np.count_nonzero(resolved)


@pytest.mark.parametrize("columns", [1, 2, 20, 200])
@pytest.mark.parametrize("wide", [False, True])
def test_methods_resolve_stated_values(columns: int, wide: bool) -> None:
    """Values at the stated resolution have errors of at most 2%. Smaller values may become zero."""
    for method in METHODS:
        rows = 3 * columns + 1
        finest = resolution(method, rows=rows, columns=columns)
        sigma = np.zeros(columns)
        sigma[0] = 1.0
        if method == "gram":
            sigma[1 : columns // 2] = finest
        left = np.linalg.qr(np.random.default_rng(4).standard_normal((rows, columns)))[0]
        right = np.linalg.qr(np.random.default_rng(5).standard_normal((columns, columns)))[0]
        matrix = (left * sigma) @ right
        values = matrix_spectrum(matrix.T if wide else matrix, method=method).singular_values
        positive = np.count_nonzero(sigma)
        np.testing.assert_allclose(values[:positive], sigma[:positive], rtol=0.02)
        assert (values[positive:] < finest * values[0]).all()


@every_method
@pytest.mark.parametrize(
    ("bad", "dtype"), [(np.nan, np.float16), (np.inf, np.float32), (-np.inf, np.float64)]
)
def test_first_bad_row_is_named(method: Method, bad: float, dtype: type[Any]) -> None:
    stream = SpectrumStream(method, 5)
    stream.update(np.ones((40, 5), dtype=dtype))
    rows = np.ones((10, 5), dtype=dtype)
    rows[[3, 7], 2] = bad
    with pytest.raises(UserError, match="row 43 "):
        stream.update(rows)


@every_method
def test_values_at_range_end(method: Method) -> None:
    """Sums or squares of these values exceed float64's range."""
    drawn = np.random.default_rng(7).uniform(0.1, 1, (4, 3))
    for size in (1e307, 1e-200):
        if method == "gram":
            with pytest.raises(UserError, match="--method qr"):
                matrix_spectrum(drawn * size, method=method)
        else:
            values = matrix_spectrum(drawn * size, method=method).singular_values
            np.testing.assert_allclose(values / size, numpy_svd(drawn), rtol=1e-12)
