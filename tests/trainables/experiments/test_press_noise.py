from __future__ import annotations

import math

import numpy as np
import pytest

from search_spaces.press_robustness import VARIANCES
from trainables.config import PRESS_NOISE, PressNoiseConfig
from trainables.experiments.press_noise import (
    add_noise,
    cut_log_p,
    log_p_factors,
    measure,
    split_singular_values,
)
from trainables.measurements import EFFECTIVE_RANK_EPSILONS, effective_rank
from trainables.runtime import Runtime
from trainables.trial_folder import Metric

SMALL = PressNoiseConfig(seed=3, size=60)


def metrics(**settings: object) -> dict[str, Metric]:
    return measure(SMALL.model_copy(update=settings), Runtime())[PRESS_NOISE].metrics


def tolerance(sigma: np.ndarray, precision: str = "float64") -> float:
    return 0.5 * math.sqrt(2 * len(sigma) + 1) * float(sigma[0]) * float(np.finfo(precision).eps)


def noisy(size: int, c: float, *, seed: int = 1) -> np.ndarray:
    left, sigma, right = cut_log_p(size, 10, seed)
    matrix = (left * sigma) @ right
    add_noise(matrix, c, seed)
    return matrix


def test_factors_multiply_to_log_probabilities() -> None:
    left, right = log_p_factors(80, seed=5)
    log_p = left @ right.T
    assert np.exp(log_p).sum(axis=1) == pytest.approx(np.ones(80))
    sigma = np.linalg.svd(log_p, compute_uv=False)
    assert sigma[17] > 0.1 and sigma[18] < 1e-11
    assert sigma[0] > 80 * math.log(80), "sigma_max of any log-P matrix is at least this large"


@pytest.mark.parametrize("rank", [3, 18])
def test_cut_equals_normalised_numpy(rank: int) -> None:
    left, right = log_p_factors(80, seed=5)
    full_left, full_sigma, full_right = np.linalg.svd(left @ right.T)
    expected = (full_left[:, :rank] * full_sigma[:rank] / full_sigma[0]) @ full_right[:rank]
    left, sigma, right = cut_log_p(80, rank, seed=5)
    assert sigma[0] == 1
    assert (left * sigma) @ right == pytest.approx(expected, abs=1e-14)


def test_noise_has_stated_variance() -> None:
    clean = noisy(60, 0.0)
    large, small = (noisy(60, c) - clean for c in (1e-2, 1e-4))
    assert large.var() == pytest.approx(1e-2 / 60**2, rel=0.1)
    assert small == pytest.approx(large / 10, abs=1e-15)


@pytest.mark.parametrize("size", [120, 600])
def test_noise_ranks_equal_plain_svd(size: int) -> None:
    """The two ranks may differ by one, if a singular value is very close to the tolerance."""
    _, _, right = cut_log_p(size, 10, 1)
    for c in VARIANCES:
        matrix = noisy(size, c)
        plain = np.linalg.svd(matrix, compute_uv=False)
        split = split_singular_values(matrix, right.T)
        assert split == pytest.approx(plain, rel=1e-8, abs=0.5 * tolerance(plain)), c
        counts = [np.count_nonzero(sigma > tolerance(sigma)) for sigma in (plain, split)]
        assert counts[0] == pytest.approx(counts[1], abs=1), c
        for epsilon in map(float, EFFECTIVE_RANK_EPSILONS):
            assert effective_rank(split, epsilon) == effective_rank(plain, epsilon), (c, epsilon)


def test_round_trips_cut_nothing() -> None:
    measured = metrics(round_trips=3)
    left, sigma, right = cut_log_p(60, 10, 3)
    first = matrix = (left * sigma) @ right
    for trip in (1, 2, 3):
        u, s, v = np.linalg.svd(matrix)
        matrix = (u * s) @ v
        after = np.linalg.svd(matrix, compute_uv=False)
        assert (
            measured[f"round_trip {trip} press_rank"]
            == np.count_nonzero(after > tolerance(after))
            == 10
        )
        assert measured[f"round_trip {trip} error"] == pytest.approx(((matrix - first) ** 2).sum())
        assert 0 < float(measured[f"round_trip {trip} largest_below"]) < 1
    assert not any(name.startswith("noisy") for name in measured)
