"""The rank of a matrix of whole numbers, without rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PRIME = 2**31 - 1
"""A remainder less a product of two fits an int64."""


def rank_modulo_prime(matrix_NR: NDArray[np.int64]) -> int:
    """The rank of N x R whole numbers over the remainders modulo 2^31 - 1, by elimination.

    It is never above the rank over the rational numbers, since a minor that vanishes vanishes in remainders too; a
    result of min(N, R) is therefore the rank over both.
    """
    rest = (matrix_NR if len(matrix_NR) <= matrix_NR.shape[1] else matrix_NR.T) % PRIME
    rank = 0
    while rest.size:
        first, rest = rest[0], rest[1:]
        places = np.flatnonzero(first)
        if not len(places):
            continue
        rank += 1
        pivot = places[0]
        multiples = rest[:, pivot] * pow(int(first[pivot]), -1, PRIME) % PRIME
        rest = np.delete(rest - multiples[:, None] * first, pivot, axis=1) % PRIME
    return rank
