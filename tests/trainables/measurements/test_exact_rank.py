"""The exact rank against matrices whose rank is plain, and against numpy's where rounding cannot matter."""

from __future__ import annotations

import numpy as np
import pytest

from trainables.measurements.exact_rank import PRIME, rank_modulo_prime


@pytest.mark.parametrize("rank", [0, 1, 3, 7])
def test_products_of_thin_factors_have_their_width_as_rank(rank: int) -> None:
    rng = np.random.default_rng(rank)
    left, right = rng.integers(-1000, 1000, (12, rank)), rng.integers(-1000, 1000, (rank, 7))
    matrix = left @ right
    assert rank_modulo_prime(matrix) == rank_modulo_prime(matrix.T) == np.linalg.matrix_rank(matrix) == rank


def test_it_sees_a_difference_that_rounding_hides() -> None:
    """Two rows that differ by one in 2^52."""
    rows = np.array([[2**52, 2**52 + 1], [2**52 + 1, 2**52 + 2]])
    assert rank_modulo_prime(rows) == 2
    assert np.linalg.matrix_rank(rows.astype(float)) == 1


def test_zeros_come_where_they_will() -> None:
    assert rank_modulo_prime(np.array([[0, 0, 0], [0, 0, 5], [0, 3, 1], [0, 6, 2]])) == 2
    assert rank_modulo_prime(np.zeros((3, 4), dtype=np.int64)) == 0
    assert rank_modulo_prime(np.eye(5, dtype=np.int64)[:, ::-1]) == 5


def test_it_is_never_above_the_rank() -> None:
    """What the prime divides vanishes in remainders, and only lowers the number."""
    assert rank_modulo_prime(np.diag([1, PRIME, 1])) == 2
