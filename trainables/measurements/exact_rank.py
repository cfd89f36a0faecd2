"""The rank of a matrix of whole numbers, without rounding."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

PRIME = 2**31 - 1
"""Products of two remainders fit an int64."""


def rank_modulo_prime(matrix_NR: NDArray[np.int64]) -> int:
    """The rank of N x R whole numbers over the remainders modulo 2^31 - 1, by elimination.

    It is never above the rank over the rational numbers, since a minor that vanishes vanishes in remainders too; a
    result of min(N, R) is therefore the rank over both.
    """
    rest = matrix_NR % PRIME
    rank = 0
    for column in range(rest.shape[1]):
        below = np.flatnonzero(rest[rank:, column])
        if not len(below):
            continue
        pivot = rank + int(below[0])
        rest[[rank, pivot]] = rest[[pivot, rank]]
        row = rest[rank, column:] * pow(int(rest[rank, column]), -1, PRIME) % PRIME
        rest[rank + 1 :, column:] = (rest[rank + 1 :, column:] - rest[rank + 1 :, column, None] * row % PRIME) % PRIME
        rank += 1
        if rank == len(rest):
            break
    return rank
