"""What the head's matrix W alone says of log P, without a context: a rank that is certain to be
enough.

Logits are z = W x, plus biases, which all contexts share; |x| <= c for every context x, as the norm
before the head sees to (x is then the normed vector before the norm's gain, c = sqrt(D), and W the
head times that gain). The softmax ignores a number that all words share, so W is centred over words
first.

The head cut to rank r is W_r = W Q_r Q_r^T, Q_r the first r right singular vectors; e_v are the
rows of E = W - W_r. Let d = E x, and P, P_r be the softmax of z and z - d. Then for every context

    KL(P || P_r) <= (max d - min d)^2 / 8
    (1) max d - min d <= c min(sqrt(2) sigma_{r+1}, |e_v| + |e_w|), v and w the rows of the largest
    norms             (2)

(1): log P_r = log P - d - log E_P[exp(-d)], so KL = E_P[d] + log E_P[exp(-d)] = log E_P[exp(E_P[d]
- d)], the logarithm of the moment generating function of a centred variable in an interval as long
as max d - min d; by Hoeffding's lemma it is at most an eighth of the square of that length. (2):
d_v - d_w = (e_v - e_w) x <= |e_v - e_w| c, and d_v - d_w <= sqrt(2) |d| <= sqrt(2) |E| c, where |E|
= sigma_{r+1}. KL(P_r || P) has the same bounds.

So with the least r whose bound is at most epsilon nats, a head of rank r, and the biases, would
have done at any context. This says nothing of smaller ranks, and holds for a plain softmax alone,
in exact arithmetic. The second half of (2) is nearly always the smaller, as a head has many rows:
by about sqrt(V / 2D) where all are alike and r is small.

Source of (1): Hoeffding (1963), Probability inequalities for sums of bounded random variables,
section 4.

Legend: V words, D width, R the lesser of both, N rows of a block.
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
"""The rows of a matrix in blocks, from its first row on at every call."""
Centred = Callable[[], Iterator[NDArray[np.float64]]]


def log_p_rank_bound(words: int, width: int, *, bias: bool) -> int:
    """The highest rank that log P of a softmax over W h (+ b) can have, over any contexts: that of
    W h is at most D, the normaliser adds one and an output bias another one; it is at most V."""
    return min(words, width + 1 + bias)


def kl_bounds(blocks: Blocks, *, gain_D: NDArray[np.float64], norm: float) -> NDArray[np.float64]:
    """For r = 0 ... R the nats that `KL(P || P_r)` of a head cut to rank r cannot exceed, for all
    contexts with |x| <= norm (see above); W is the matrix of `blocks` times `gain_D`. Never
    increasing; reads the matrix three times.

    Needs memory for three D x D matrices of float64 and a few blocks. Raises UserError if numbers
    are too large to be squared."""
    words, mean_D = _mean(blocks)

    def centred() -> Iterator[NDArray[np.float64]]:
        for block_ND in blocks():
            PULSE.touch()
            yield (block_ND - mean_D) * gain_D

    with np.errstate(over="ignore", invalid="ignore"):
        directions_DR, sigma_R = _directions(centred, words, len(gain_D))
        spread_R = np.minimum(math.sqrt(2) * sigma_R, _largest_pair(centred, directions_DR))
        # A head of rank R is the head itself.
        return np.append((norm * spread_R) ** 2 / 8, 0.0)


def _mean(blocks: Blocks) -> tuple[int, NDArray[np.float64]]:
    """How many rows there are, and their mean."""
    words, total_D = 0, np.zeros(1)
    for block_ND in blocks():
        total_D = total_D + block_ND.sum(axis=0, dtype=np.float64)
        words += len(block_ND)
    return words, total_D / words


def _directions(
    centred: Centred, words: int, width: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Right singular vectors as columns, that of the largest value first, and the values, none of
    them too small."""
    gram_DD = np.zeros((width, width), order="F")
    for block_ND in centred():
        gram_DD = blas.dsyrk(1.0, block_ND.T, beta=1.0, c=gram_DD, lower=1, overwrite_c=1)
    if not np.isfinite(gram_DD).all():
        raise UserError(
            "The head's numbers are too large for float64 to square, so it has no KL-rank bounds: "
            "rescale it."
        )
    PULSE.touch(quiet_s=10 * width**3 / SLOWEST_FLOPS)
    squares_D, directions_DD = eigh(gram_DD, overwrite_a=True, check_finite=False)
    # Rounding moves an eigenvalue by less than this, see `resolution`.
    slack = FLOAT64_EPS * width * squares_D[-1]
    sigma_D = np.sqrt(np.maximum(squares_D[::-1], 0.0) + slack)
    rank = min(words, width)
    return directions_DD[:, ::-1][:, :rank], sigma_D[:rank]


def _largest_pair(centred: Centred, directions_DR: NDArray[np.float64]) -> NDArray[np.float64]:
    """For r = 0 ... R - 1 the two largest norms, added up, of what rows have outside the first r
    directions."""
    largest_2R = np.zeros((2, directions_DR.shape[1]))
    for block_ND in centred():
        squares_NR = np.square(block_ND @ directions_DR)
        outside_NR = np.cumsum(squares_NR[:, ::-1], axis=1)[:, ::-1]
        largest_2R = np.partition(np.concatenate([largest_2R, outside_NR]), -2, axis=0)[-2:]
    pair_R: NDArray[np.float64] = np.sqrt(largest_2R).sum(axis=0)
    return pair_R
