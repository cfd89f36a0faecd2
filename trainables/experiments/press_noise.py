"""Ranks of a log-P matrix of known rank, with noise and after SVD round trips (AAAI 2021, SM Algorithms 1 and 2).

Legend: N rows (contexts), V columns (words), D width, R directions that a rank counts.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainables.config import PRESS_NOISE, PressNoiseConfig
from trainables.device import svd_driver
from trainables.measurements import EFFECTIVE_RANK_EPSILONS, effective_rank, press_tolerance, singular_values
from trainables.pulse import PULSE, SLOWEST_FLOPS
from trainables.runtime import Runtime
from trainables.trial_folder import Measured, Metric

MATRIX, NOISE = 0, 1
"""Streams of random numbers: the noise is the same, but for its size, whatever its variance."""


def measure(config: PressNoiseConfig, runtime: Runtime) -> dict[str, Measured]:
    """The Press and effective ranks of the noisy matrix ("noisy_*"), and after each round trip ("round_trip 1 *").

    `below_tolerance` is the largest singular value that the Press rank does not count, in units of its tolerance; 0
    where there is none.
    """
    matrix_NV = torch.from_numpy(noisy_log_p(config)).to(runtime.device, getattr(torch, config.precision))
    sigma, tolerance, ranks = _ranks(matrix_NV)
    metrics: dict[str, Metric] = {"noisy_sigma_max": float(sigma[0]), "noisy_press_tolerance": tolerance}
    metrics |= {f"noisy_{name}": value for name, value in ranks.items()}
    for trip in range(1, config.round_trips + 1):
        PULSE.touch(quiet_s=50 * config.size**3 / SLOWEST_FLOPS)
        matrix_NV = round_trip(matrix_NV, config.size if config.kept == "all" else int(ranks["press_rank"]))
        _, _, ranks = _ranks(matrix_NV)
        metrics |= {f"round_trip {trip} {name}": value for name, value in ranks.items()}
    return {PRESS_NOISE: Measured(metrics)}


def log_p(size: int, rank: int, seed: int) -> NDArray[np.float64]:
    """A `size` x `size` log-P matrix of rank `rank`: log_softmax of H W^T + b, H and W of width rank - 2.

    H is standard normal, W normal so that a logit's part of H has variance 1, and b the log frequencies of Zipf's law,
    shuffled: logits of rank d + 1 at most, and the normaliser of each row adds one more.
    """
    random, width = np.random.default_rng([seed, MATRIX]), rank - 2
    contexts_ND = random.standard_normal((size, width))
    words_VD = random.standard_normal((size, width)) / math.sqrt(width)
    bias_V = -np.log(random.permutation(size) + 1.0)
    logits_NV = contexts_ND @ words_VD.T
    logits_NV += bias_V
    logits_NV -= logits_NV.max(axis=1, keepdims=True)
    logits_NV -= np.log(np.exp(logits_NV).sum(axis=1, keepdims=True))
    return logits_NV


def noisy_log_p(config: PressNoiseConfig) -> NDArray[np.float64]:
    """The matrix with Gaussian noise of variance c on every entry, in float64."""
    matrix_NV = log_p(config.size, config.rank, config.seed)
    if config.noise_variance > 0:
        noise_NV = np.random.default_rng([config.seed, NOISE]).standard_normal(matrix_NV.shape)
        noise_NV *= math.sqrt(config.noise_variance)
        matrix_NV += noise_NV
    return matrix_NV


def round_trip(matrix_NV: Tensor, kept: int) -> Tensor:
    """Decompose, keep the `kept` strongest directions, and multiply them back."""
    left_NR, sigma_R, right_RV = torch.linalg.svd(matrix_NV, full_matrices=False, driver=svd_driver(matrix_NV))
    return (left_NR[:, :kept] * sigma_R[:kept]) @ right_RV[:kept]


def _ranks(matrix_NV: Tensor) -> tuple[NDArray[np.float64], float, dict[str, float]]:
    """The singular values of a square matrix, its Press tolerance, and its ranks by name."""
    sigma: NDArray[np.float64] = singular_values(matrix_NV).double().cpu().numpy()
    size, eps = len(sigma), torch.finfo(matrix_NV.dtype).eps
    tolerance = press_tolerance(sigma, rows=size, columns=size, eps=eps)
    below = sigma[sigma <= tolerance]
    return (
        sigma,
        tolerance,
        {
            "press_rank": size - len(below),
            **{f"effective_rank_{name}": effective_rank(sigma, float(name)) for name in EFFECTIVE_RANK_EPSILONS},
            "below_tolerance": float(below[0] / tolerance) if len(below) else 0.0,
        },
    )
