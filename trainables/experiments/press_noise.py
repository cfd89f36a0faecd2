"""Ranks of a log-P matrix cut to a few directions: with noise, and after SVD round trips (AAAI
2021, SM 5).

All in numpy, on the CPU: what round trips add is the rounding of one LAPACK library.

Legend: N rows (contexts), V columns (words), N = V; R directions that the cut keeps.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trainables.config import PRESS_NOISE, PressNoiseConfig
from trainables.measurements import (
    EFFECTIVE_RANK_EPSILONS,
    effective_rank,
    eigenvalues_in_place,
    press_tolerance,
)
from trainables.pulse import PULSE, SLOWEST_FLOPS
from trainables.runtime import Runtime
from trainables.trial_folder import Measured, Metric

MATRIX, NOISE = 0, 1
"""Streams of random numbers. The noise is one draw, scaled by the root of its variance."""
WIDTH = 16
"""Of the softmax layer whose log-P matrix is cut; the matrix has rank 18."""
REFINEMENTS = 8
"""Steps of subspace iteration. Each divides the angle by (sigma_R / sigma_R+1)^2, at least 7 from N
= 120 on."""

Matrix = NDArray[np.floating]


def measure(config: PressNoiseConfig, runtime: Runtime) -> dict[str, Measured]:
    """Ranks of the noisy matrix ("noisy_*"), or after each round trip ("round_trip 1 *").

    `error` is the sum of squared differences from the matrix before the first trip; `largest_below`
    the largest singular value that the Press rank does not count, as a multiple of its tolerance.
    """
    del runtime
    left_NR, sigma_R, right_RV = cut_log_p(config.size, config.rank, config.seed)
    matrix_NV = (left_NR * sigma_R) @ right_RV
    add_noise(matrix_NV, config.noise_variance, config.seed)
    matrix_NV = matrix_NV.astype(config.precision, copy=False)
    eps = float(np.finfo(config.precision).eps)
    if config.round_trips:
        return {PRESS_NOISE: Measured(_after_round_trips(matrix_NV, config.round_trips, eps))}
    ranks = _ranks(split_singular_values(matrix_NV.astype(float, copy=False), right_RV.T), eps)
    return {PRESS_NOISE: Measured({f"noisy_{name}": value for name, value in ranks.items()})}


def log_p_factors(size: int, seed: int) -> tuple[Matrix, Matrix]:
    """Factors (N, 18) and (V, 18) whose product is log_softmax(H W^T + b), so that nothing of size
    N x V is decomposed.

    H is standard normal, W normal so that a logit's part of H has variance 1, and b the log
    frequencies of Zipf's law, shuffled."""
    random = np.random.default_rng([seed, MATRIX])
    contexts_ND = random.standard_normal((size, WIDTH))
    words_VD = random.standard_normal((size, WIDTH)) / math.sqrt(WIDTH)
    bias_V = -np.log(random.permutation(size) + 1.0)
    logits_NV = contexts_ND @ words_VD.T
    logits_NV += bias_V
    largest_N1 = logits_NV.max(axis=1, keepdims=True)
    logits_NV -= largest_N1
    normaliser_N1 = largest_N1 + np.log(np.exp(logits_NV, out=logits_NV).sum(axis=1, keepdims=True))
    ones_N1 = np.ones((size, 1))
    return np.hstack([contexts_ND, ones_N1, normaliser_N1]), np.hstack(
        [words_VD, bias_V[:, None], -ones_N1]
    )


def cut_log_p(size: int, rank: int, seed: int) -> tuple[Matrix, Matrix, Matrix]:
    """The `rank` largest singular values of a log-P matrix, divided by the largest, with their
    directions."""
    (left_NK, left_KK), (right_VK, right_KK) = map(np.linalg.qr, log_p_factors(size, seed))
    turn_KK, sigma_K, back_KK = np.linalg.svd(left_KK @ right_KK.T)
    return (left_NK @ turn_KK)[:, :rank], sigma_K[:rank] / sigma_K[0], (back_KK @ right_VK.T)[:rank]


def add_noise(matrix_NV: Matrix, variance: float, seed: int) -> None:
    """Add Gaussian noise of variance `variance` / N^2 to every entry."""
    if variance > 0:
        noise_NV = np.random.default_rng([seed, NOISE]).standard_normal(matrix_NV.shape)
        noise_NV *= math.sqrt(variance) / len(matrix_NV)
        matrix_NV += noise_NV


def split_singular_values(matrix_NV: Matrix, right_VR: Matrix) -> NDArray[np.float64]:
    """Singular values, descending, of a float64 matrix with R directions far stronger than the
    others; overwrites it.

    `right_VR` spans about the R right directions. They are refined and subtracted; the eigenvalues
    of the Gram matrix of the rest have its resolution, 1e-8 of its own largest singular value, at a
    fifth of the time of an SVD."""
    for _ in range(REFINEMENTS):
        left_NR, _ = np.linalg.qr(matrix_NV @ right_VR)
        right_VR, _ = np.linalg.qr(matrix_NV.T @ left_NR)
    strong_NR = matrix_NV @ right_VR
    left_NR, _ = np.linalg.qr(strong_NR)
    matrix_NV -= strong_NR @ right_VR.T
    matrix_NV -= left_NR @ (left_NR.T @ matrix_NV)
    squares_V = eigenvalues_in_place(matrix_NV.T @ matrix_NV)[right_VR.shape[1] :]
    weak_V = np.sqrt(np.maximum(squares_V, 0.0))
    return np.sort(np.concatenate([weak_V, np.linalg.svd(strong_NR, compute_uv=False)]))[::-1]


def _after_round_trips(matrix_NV: Matrix, count: int, eps: float) -> dict[str, Metric]:
    """`count` times: decompose, multiply all directions back. The next decomposition has the
    singular values."""
    metrics, before_NV = dict[str, Metric](), matrix_NV
    for trip in range(count + 1):
        PULSE.touch(quiet_s=50 * len(matrix_NV) ** 3 / SLOWEST_FLOPS)
        left_NN, sigma_N, right_NV = np.linalg.svd(matrix_NV)
        if trip > 0:
            ranks = {
                **_ranks(sigma_N.astype(float), eps),
                "error": float(np.linalg.norm(matrix_NV - before_NV)) ** 2,
            }
            metrics |= {f"round_trip {trip} {name}": value for name, value in ranks.items()}
        matrix_NV = (left_NN * sigma_N) @ right_NV
    return metrics


def _ranks(sigma_N: NDArray[np.float64], eps: float) -> dict[str, float]:
    size = len(sigma_N)
    tolerance = press_tolerance(sigma_N, rows=size, columns=size, eps=eps)
    count = int(np.count_nonzero(sigma_N > tolerance))
    return {
        "press_rank": count,
        **{
            f"effective_rank_{name}": effective_rank(sigma_N, float(name))
            for name in EFFECTIVE_RANK_EPSILONS
        },
        "press_tolerance": tolerance,
        "largest_below": float(sigma_N[count] / tolerance) if count < size else 0.0,
    }
