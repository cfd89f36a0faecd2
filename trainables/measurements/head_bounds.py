"""Bounds on log P from the head's matrix W alone: a rank that is enough at every context.

Logits are z = W x plus biases common to all contexts, with |x| <= c. x is the output of the final
norm before its gain, so c = sqrt(D). W is the head times the gain, centred over words, because a
softmax ignores a common number.

W_r is the projection of W onto its first r right singular vectors. Let e_v be the rows of E = W -
W_r, d = E x, and P, P_r the softmax of z and z - d. For every context

    KL(P || P_r) <= (max d - min d)^2 / 8                               (1)
    max d - min d <= c min(sqrt(2) sigma_{r+1}, |e_v| + |e_w|)          (2)

with e_v and e_w the two longest rows. KL(P_r || P) has the same bounds.

If the bound at rank r is at most epsilon nats, rank r plus the biases is enough; a smaller rank may
be enough. This holds for a plain softmax in exact arithmetic.

Shapes: V words, D width, R = min(V, D), N rows of a block.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas, eigh

from trainables.errors import UserError
from trainables.measurements.spectrum import FLOAT64_EPS
from trainables.pulse import PULSE, SLOWEST_FLOPS

Blocks = Callable[[], Iterable[NDArray[np.floating[Any]]]]
"""A function that returns an iterator over all row blocks of a matrix."""
Centred = Callable[[], Iterator[NDArray[np.float64]]]


def log_p_rank_bound(words: int, width: int, *, bias: bool) -> int:
    """Return the highest possible rank of log P for a softmax over W h, or over W h + b.

    W h has rank D. The normaliser and a bias add one each, up to V.
    """
    return min(words, width + 1 + bias)


def kl_bounds(blocks: Blocks, *, gain_D: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """Return bounds in nats on `KL(P || P_r)`, r = 0 ... R, at all contexts with |x| <= norm.

    W is the matrix in `blocks` times `gain_D`. The bounds never increase with r. Reads the blocks
    three times. Needs memory for three D x D float64 matrices. Raises UserError if squares
    overflow.
    """
    words, mean_D = _mean(blocks)

    def centred() -> Iterator[NDArray[np.float64]]:
        for block_ND in blocks():
            PULSE.touch()
            yield (block_ND - mean_D) * gain_D

    # (1): Hoeffding's lemma (1963, section 4) bounds KL = E_P[d] + log E_P[exp(-d)].
    # (2): d_v - d_w = (e_v - e_w) x <= |e_v - e_w| c, and d_v - d_w <= sqrt(2) |d| <= sqrt(2)
    # sigma_{r+1} c.
    with np.errstate(over="ignore", invalid="ignore"):
        directions_DR, sigma_R = _directions(centred, words, len(gain_D))
        spread_R = np.minimum(math.sqrt(2) * sigma_R, _largest_pair(centred, directions_DR))
        # A head of rank R is the head itself.
        return np.append((norm * spread_R) ** 2 / 8, 0.0)


def _mean(blocks: Blocks) -> tuple[int, NDArray[np.float64]]:
    words, total_D = 0, np.zeros(1)
    for block_ND in blocks():
        total_D = total_D + block_ND.sum(axis=0, dtype=np.float64)
        words += len(block_ND)
    return words, total_D / words


def _directions(
    centred: Centred, words: int, width: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    gram_DD = np.zeros((width, width), order="F")
    for block_ND in centred():
        gram_DD = blas.dsyrk(1.0, block_ND.T, beta=1.0, c=gram_DD, lower=1, overwrite_c=1)
    if not np.isfinite(gram_DD).all():
        raise UserError(
            "The squares of the head's values overflow float64, so there are no KL-rank bounds. "
            "Rescale the head."
        )
    PULSE.touch(quiet_s=10 * width**3 / SLOWEST_FLOPS)
    squares_D, directions_DD = eigh(gram_DD, overwrite_a=True, check_finite=False)
    # Rounding moves an eigenvalue by less than this; see `resolution`.
    slack = FLOAT64_EPS * width * squares_D[-1]
    sigma_D = np.sqrt(np.maximum(squares_D[::-1], 0.0) + slack)
    rank = min(words, width)
    return directions_DD[:, ::-1][:, :rank], sigma_D[:rank]


def _largest_pair(centred: Centred, directions_DR: NDArray[np.float64]) -> NDArray[np.float64]:
    largest_2R = np.zeros((2, directions_DR.shape[1]))
    for block_ND in centred():
        squares_NR = np.square(block_ND @ directions_DR)
        outside_NR = np.cumsum(squares_NR[:, ::-1], axis=1)[:, ::-1]
        largest_2R = np.partition(np.concatenate([largest_2R, outside_NR]), -2, axis=0)[-2:]
    return np.sqrt(largest_2R).sum(axis=0)
