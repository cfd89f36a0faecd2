from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from trainables.errors import UserError
from trainables.measurements.ranks import (
    PRIME,
    effective_rank,
    entropy_rank,
    press_rank,
    press_tolerance,
    rank_modulo_prime,
    rank_report,
    stable_rank,
)
from trainables.measurements.spectrum import FLOAT64_EPS, Method, Spectrum


def spectrum_of(
    sigma: NDArray[np.float64], *, rows: int, columns: int, method: Method = "gram"
) -> Spectrum:
    return Spectrum(singular_values=sigma, rows=rows, columns=columns, method=method)


def test_press_tolerance_of_published_shape() -> None:
    """PTB's test set, float32: 0.5 * sqrt(82430 + 10000 + 1) * 2^-23 = 1.812e-5 of sigma_max."""
    tolerance = press_tolerance(np.array([100.0, 1.0]), rows=82_430, columns=10_000)
    assert tolerance == pytest.approx(100 * 0.5 * 304.0247 * 2**-23, rel=1e-6)


def test_rank_below_the_resolution() -> None:
    sigma = np.linspace(1, 0.1, 50)
    with pytest.raises(UserError, match="--method qr"):
        press_rank(spectrum_of(sigma, rows=80, columns=50, method="gram"), eps=FLOAT64_EPS)
    assert press_rank(spectrum_of(sigma, rows=80, columns=50, method="qr"), eps=FLOAT64_EPS) == 50
    with pytest.raises(UserError, match=r"eps of 2\.22e-16 or more"):
        press_rank(spectrum_of(sigma, rows=80, columns=50, method="qr"), eps=FLOAT64_EPS / 2)


@given(
    values=st.lists(st.integers(1, 10**6), min_size=1, max_size=30),
    epsilon=st.sampled_from(["1e-3", "1e-4", "1e-5", "0.5", "0.1"]),
)
def test_effective_rank_equals_its_definition(values: list[int], epsilon: str) -> None:
    descending = sorted(values, reverse=True)
    total = sum(value**2 for value in descending)
    needed = (1 - Fraction(epsilon)) * total
    heads = [sum(value**2 for value in descending[:k]) for k in range(1, len(descending) + 1)]
    smallest = next(k for k, head in enumerate(heads, start=1) if head >= needed)
    rank = effective_rank(np.array(descending, dtype=np.float64), float(epsilon))
    # If a sum equals the bound to the last digits, float64 may fall on either side.
    assert rank == smallest or abs(heads[min(rank, smallest) - 1] / needed - 1) < 1e-12


@given(count=st.integers(1, 50), size=st.floats(1e-3, 1e3))
def test_equal_values_have_rank_count(count: int, size: float) -> None:
    sigma = np.concatenate([np.full(count, size), np.zeros(7)])
    assert entropy_rank(sigma) == pytest.approx(count, rel=1e-12)
    assert stable_rank(sigma) == pytest.approx(count, rel=1e-12)


def test_ranks_of_two_values() -> None:
    sigma = np.array([3.0, 1.0])
    assert entropy_rank(sigma) == pytest.approx(4 / 3**0.75)  # exp of the entropy of (3/4, 1/4)
    assert stable_rank(sigma) == pytest.approx(10 / 9)


@pytest.mark.parametrize("size", [1e-300, 1e300])
def test_ranks_ignore_units(size: float) -> None:
    sigma = np.array([4.0, 2.0, 1.0, 1e-20])
    for rank in (lambda values: effective_rank(values, 1e-3), entropy_rank, stable_rank):
        assert rank(sigma * size) == pytest.approx(rank(sigma), rel=1e-12)


def test_zeros_have_rank_zero() -> None:
    report = rank_report(spectrum_of(np.zeros(4), rows=9, columns=4))
    for name in ("press_rank", "effective_rank_1e-3", "entropy_rank", "stable_rank"):
        assert report[name] == 0


@pytest.mark.parametrize("rank", [0, 1, 3, 7])
def test_rank_of_thin_factors(rank: int) -> None:
    rng = np.random.default_rng(rank)
    left, right = rng.integers(-1000, 1000, (12, rank)), rng.integers(-1000, 1000, (rank, 7))
    matrix = left @ right
    assert rank_modulo_prime(matrix) == rank_modulo_prime(matrix.T) == rank


@pytest.mark.parametrize(
    ("matrix", "rank"),
    [
        ([[2**52, 2**52 + 1], [2**52 + 1, 2**52 + 2]], 2),  # equal rows in float64
        ([[0, 0, 0], [0, 0, 5], [0, 3, 1], [0, 6, 2]], 2),
        ([[0, 0, 0]] * 3, 0),
        ([[0, 0, 1], [0, 1, 0], [1, 0, 0]], 3),
        ([[1, 0, 0], [0, PRIME, 0], [0, 0, 1]], 2),  # multiples of the prime modulus vanish
    ],
)
def test_exact_rank_of_hard_matrices(matrix: list[list[int]], rank: int) -> None:
    assert rank_modulo_prime(np.array(matrix)) == rank
