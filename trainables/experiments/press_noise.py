"""Ranks of a low-rank log-P matrix after noise or an SVD round trip (AAAI 2021, SM 5).

A round trip computes the SVD and multiplies its factors. It runs in numpy on the CPU, to show the
rounding of one LAPACK library.

Shapes: N rows (contexts), V columns (words), N = V; R directions kept.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from trainables.config import PRESS_NOISE, PressNoiseConfig
from trainables.measurements import (
    EFFECTIVE_RANK_EPSILONS,
    effective_rank,
    eigenvalues,
    press_tolerance,
)
from trainables.pulse import PULSE, SLOWEST_FLOPS
from trainables.runtime import Runtime
from trainables.trial_folder import Measured, Metric

MATRIX, NOISE = 0, 1
"""Random stream numbers. At one seed, noise of any variance is a multiple of one draw."""
WIDTH = 16
"""Width of the softmax layer; its log-P matrix has rank WIDTH + 2 = 18."""
REFINEMENTS = 8
"""Number of subspace iterations. Each reduces the error of the R dominant directions by (sigma_R /
sigma_R+1)^2, which is at least 7 for N >= 120."""

Matrix = NDArray[np.floating]


def measure(config: PressNoiseConfig, runtime: Runtime) -> dict[str, Measured]:
    """Return ranks of the noisy matrix ("noisy_*"), or after each round trip ("round_trip 1 *").

    `error` is the squared Frobenius distance from the matrix before the first trip. `largest_below`
    is the largest singular value below the Press tolerance, divided by that tolerance.
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
    """Return factors (N, 18) and (V, 18) whose product is log_softmax(H W^T + b).

    H is standard normal, W normal with H W^T of variance 1. b has Zipf's log frequencies in random
    order.
    """
    generator = np.random.default_rng([seed, MATRIX])
    contexts_ND = generator.standard_normal((size, WIDTH))
    words_VD = generator.standard_normal((size, WIDTH)) / math.sqrt(WIDTH)
    bias_V = -np.log(generator.permutation(size) + 1.0)
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
    """Return left vectors, singular values and right vectors of a log-P matrix cut to rank `rank`.

    Singular values are divided by the largest one.
    """
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
    """Return the descending singular values of a float64 matrix, which is overwritten.

    `right_VR` approximately spans the R dominant right singular vectors. These are refined, and
    their part of the matrix is subtracted. The other singular values come from the remainder's Gram
    matrix. They are accurate to 1e-8 of the largest among them, in a fifth of an SVD's time.
    """
    for _ in range(REFINEMENTS):
        left_NR, _ = np.linalg.qr(matrix_NV @ right_VR)
        right_VR, _ = np.linalg.qr(matrix_NV.T @ left_NR)
    image_NR = matrix_NV @ right_VR
    left_NR, _ = np.linalg.qr(image_NR)
    matrix_NV -= image_NR @ right_VR.T
    matrix_NV -= left_NR @ (left_NR.T @ matrix_NV)
    squares_V = eigenvalues((matrix_NV.T @ matrix_NV).T)[right_VR.shape[1] :]
    residual_V = np.sqrt(np.maximum(squares_V, 0.0))
    return np.sort(np.concatenate([residual_V, np.linalg.svd(image_NR, compute_uv=False)]))[::-1]


def _after_round_trips(matrix_NV: Matrix, count: int, eps: float) -> dict[str, Metric]:
    # Each SVD gives the ranks after the previous trip, so there is one more SVD than trips.
    metrics, original_NV = dict[str, Metric](), matrix_NV
    for trip in range(count + 1):
        PULSE.touch(quiet_s=50 * len(matrix_NV) ** 3 / SLOWEST_FLOPS)
        left_NN, sigma_N, right_NV = np.linalg.svd(matrix_NV)
        if trip > 0:
            ranks = {
                **_ranks(sigma_N.astype(float), eps),
                "error": float(np.linalg.norm(matrix_NV - original_NV)) ** 2,
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
