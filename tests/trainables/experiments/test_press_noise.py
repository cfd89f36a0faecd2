"""The matrix of known rank, its noise and its round trips, against numpy."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from trainables.config import PressNoiseConfig
from trainables.config.measurement_names import PRESS_NOISE
from trainables.experiments.press_noise import log_p, measure, noisy_log_p, round_trip
from trainables.runtime import Runtime
from trainables.trial_folder.outcome import Metric

SMALL = PressNoiseConfig(seed=3, size=60)


def metrics(config: PressNoiseConfig) -> dict[str, Metric]:
    return measure(config, Runtime())[PRESS_NOISE].metrics


@pytest.mark.parametrize("rank", [3, 10, 20])
def test_the_matrix_is_one_of_log_probabilities_and_of_the_stated_rank(rank: int) -> None:
    matrix = log_p(80, rank, seed=5)
    assert np.exp(matrix).sum(axis=1) == pytest.approx(np.ones(80))
    sigma = np.linalg.svd(matrix, compute_uv=False)
    assert sigma[rank - 1] > 0.1 and sigma[rank] < 1e-11
    assert sigma[0] > 80 * math.log(80), "the bound of every log-P matrix"


def test_the_noise_has_its_variance_and_is_one_draw_at_every_size() -> None:
    clean = noisy_log_p(SMALL)
    large, small = (noisy_log_p(SMALL.model_copy(update={"noise_variance": c})) - clean for c in (1e-2, 1e-4))
    assert large.var() == pytest.approx(1e-2, rel=0.1)
    assert small == pytest.approx(large / 10, abs=1e-12)


def test_noise_without_weight_makes_the_matrix_full_rank_for_press_and_for_no_effective_rank() -> None:
    clean, noisy = metrics(SMALL), metrics(SMALL.model_copy(update={"noise_variance": 1e-18}))
    assert (clean["noisy_press_rank"], noisy["noisy_press_rank"]) == (10, 60)
    for epsilon in ("1e-3", "1e-4", "1e-5"):
        assert clean[f"noisy_effective_rank_{epsilon}"] == noisy[f"noisy_effective_rank_{epsilon}"]


def test_ranks_are_those_of_numpy_in_either_precision() -> None:
    for precision, variance in (("float64", 1e-26), ("float32", 1e-9)):
        config = SMALL.model_copy(update={"noise_variance": variance, "precision": precision})
        matrix = noisy_log_p(config).astype(precision)
        sigma = np.linalg.svd(matrix, compute_uv=False)
        tolerance = 0.5 * math.sqrt(121) * sigma[0] * np.finfo(precision).eps
        assert metrics(config)["noisy_press_rank"] == np.count_nonzero(sigma > tolerance)
        assert metrics(config)["noisy_press_tolerance"] == pytest.approx(tolerance)


def test_a_round_trip_keeps_the_strongest_directions_alone() -> None:
    matrix = torch.from_numpy(noisy_log_p(SMALL))
    assert torch.dist(round_trip(matrix, 10), matrix) < 1e-10
    left, sigma, right = np.linalg.svd(matrix.numpy())
    assert round_trip(matrix, 4).numpy() == pytest.approx((left[:, :4] * sigma[:4]) @ right[:4], abs=1e-10)


def test_a_round_trip_of_all_directions_leaves_the_matrix_but_for_rounding() -> None:
    """Noise that the Press rank does not count: the cut removes it, and keeping all directions does not."""
    noisy = SMALL.model_copy(update={"noise_variance": 4e-28, "round_trips": 2})
    cut, kept = (metrics(noisy.model_copy(update={"kept": kept})) for kept in ("press_rank", "all"))
    for found in (cut, kept):
        assert [found[f"{state} press_rank"] for state in ("round_trip 1", "round_trip 2")] == [10, 10]
    before, removed, left = (
        float(found[name])
        for found, name in (
            (kept, "noisy_below_tolerance"),
            (cut, "round_trip 1 below_tolerance"),
            (kept, "round_trip 1 below_tolerance"),
        )
    )
    assert cut["noisy_press_rank"] == 10
    assert 0 < removed < 0.9 * before < left < 1


def test_a_rank_as_large_as_the_matrix_is_refused() -> None:
    with pytest.raises(ValueError, match="rank must be less than size"):
        PressNoiseConfig(seed=1, size=20, rank=20)


def test_no_metric_has_the_name_of_a_setting() -> None:
    assert not set(metrics(SMALL.model_copy(update={"round_trips": 1}))) & set(PressNoiseConfig.model_fields)
