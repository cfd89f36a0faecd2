"""The quarter-circle law against numerical integration and against singular values of drawn matrices."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trainables.measurements.quarter_circle import COUNT_SPREAD, rank_with_noise, share_below


def test_the_distribution_function_is_the_integral_of_the_quarter_circle() -> None:
    angles = np.linspace(0, math.pi / 2, 20_001)
    for x in (0.01, 0.3, 1.0, 1.7, 1.999, 2.0):
        # In t = 2 sin(a) the density sqrt(4 - t^2) / pi becomes smooth up to its edge.
        a = np.linspace(0, math.asin(x / 2), 20_001)
        integral = np.trapezoid(4 * np.cos(a) ** 2 / math.pi, a)
        assert share_below(x) == pytest.approx(integral, abs=1e-9)
    assert np.trapezoid(4 * np.cos(angles) ** 2 / math.pi, angles) == pytest.approx(1)
    assert (share_below(-1), share_below(0), share_below(3)) == (0, 0, 1)


@pytest.mark.parametrize("size", [40, 100])
def test_drawn_matrices_have_the_predicted_rank_within_the_stated_spread(size: int) -> None:
    rank, variance = 6, 1e-6
    differences = []
    for seed in range(6):
        random = np.random.default_rng(seed)
        strong = random.standard_normal((size, rank)) @ random.standard_normal((rank, size))
        sigma = np.linalg.svd(strong + math.sqrt(variance) * random.standard_normal((size, size)), compute_uv=False)
        for share in (0.02, 0.1, 0.5, 1.0, 1.5, 1.9):
            tolerance = share * math.sqrt(variance * size)
            expected = rank_with_noise(tolerance, variance=variance, size=size, rank=rank)
            differences.append(np.count_nonzero(sigma > tolerance) - expected)
    assert np.abs(differences).max() <= COUNT_SPREAD
    assert abs(np.mean(differences)) < 0.5


def test_without_noise_or_room_for_it_the_rank_is_the_matrix_own() -> None:
    assert rank_with_noise(1e-9, variance=0.0, size=100, rank=7) == 7
    assert rank_with_noise(1e-9, variance=1e-6, size=20, rank=20) == 20
