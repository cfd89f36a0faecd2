"""The quarter-circle law against an integral and drawn matrices; what the results of press_noise trials become: lines
in order, the law and the printed ranks beside."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis.press_noise import COUNT_SPREAD, RANKS, press_noise_numbers, rank_with_noise, share_below
from orchestrator.report.sections.press_noise import press_noise_section
from trainables.config import PressNoiseConfig
from trainables.config.measurement_names import PRESS_NOISE
from trainables.experiments.press_noise import measure
from trainables.runtime import Runtime

CONFIGS = (
    PressNoiseConfig(seed=1, size=40, noise_variance=1e-28),
    PressNoiseConfig(seed=1, size=40, noise_variance=1e-25),
    PressNoiseConfig(seed=1, size=40, noise_variance=1e-2),
    PressNoiseConfig(seed=1, size=40, noise_variance=1e-7, precision="float32"),
    PressNoiseConfig(seed=1, size=40, round_trips=1),
)
NOISY_TRIPS = tuple(PressNoiseConfig(seed=1, size=40, noise_variance=c, round_trips=2) for c in (1e-30, 1e-2))


def frame_of(*configs: PressNoiseConfig) -> pd.DataFrame:
    records = []
    for config in configs:
        metrics = measure(config, Runtime())[PRESS_NOISE].metrics
        records.append({**config.model_dump(), **metrics, "state": "done"})
    return pd.DataFrame([*records, {**configs[0].model_dump(), "state": "failed"}])


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return frame_of(*CONFIGS)


def test_lines_are_ordered_and_stand_beside_the_law_and_printed_ranks(frame: pd.DataFrame) -> None:
    numbers = press_noise_numbers(frame)
    order = [(line.precision, line.variance) for line in numbers.noise]
    assert order == [("float64", 1e-2), ("float64", 1e-25), ("float64", 1e-28), ("float32", 1e-7)]
    for line in numbers.noise:
        assert line.counted[0]["press_rank"] == pytest.approx(line.predicted(line.variance), abs=COUNT_SPREAD)
        assert 0 < line.noise_share < 1
    first, middle, least, single = numbers.noise
    assert first.printed == {"press_rank": 10_000}
    assert middle.printed == dict(zip(RANKS, (10, 7, 10, 10), strict=True))
    assert (least.printed, single.printed) == ({"press_rank": 10}, {})


def test_a_matrix_on_round_trips_is_held_against_itself_alone() -> None:
    """Ranks of the two noises differ from each other (10 and 40), and none of them moves."""
    numbers = press_noise_numbers(frame_of(*NOISY_TRIPS))
    assert [(trips.variance, trips.counted[0]["press_rank"]) for trips in numbers.trips] == [
        (1e-2, 40),
        (1e-30, 10),
    ]
    section = press_noise_section(numbers)
    [sentence] = [sentence for sentence in section.findings if "round trips" in sentence]
    assert "keep as many directions as the Press rank counts change a rank of 0 of 2 matrices" in sentence
    [_, table] = section.tables
    assert [row[table.head.index("c")].number for row in table.body] == [1e-2] * 3 + [1e-30] * 3


def test_the_rounding_of_trips_that_keep_all_directions_adds_up_to_a_rank() -> None:
    config = PressNoiseConfig(seed=1, size=40, round_trips=30, kept="all", precision="float32")
    numbers = press_noise_numbers(frame_of(config))
    [trips] = numbers.trips
    moved = trips.first_moved("press_rank")
    assert moved is not None and trips.counted[moved]["press_rank"] > 10
    assert not any(trips.first_moved(name) for name in RANKS[1:])
    [sentence] = [sentence for sentence in press_noise_section(numbers).findings if "round trips" in sentence]
    assert "keep all directions change a rank of 1 of 1 matrix: float32, no noise: Press rank from 10 to " in sentence
    assert f"with trip {moved}. The largest" in sentence, "and no effective rank"


def test_the_section_says_where_effective_ranks_move(frame: pd.DataFrame) -> None:
    section = press_noise_section(press_noise_numbers(frame))
    assert [len(table.body) for table in section.tables] == [4, 2], "a round trip and the matrix itself"
    [first, second] = [sentence for sentence in section.findings if "effective ranks differ" in sentence]
    assert "at c = 0.01 (" in first and second.endswith("at no variance of it.")
    assert any("change a rank of 0 of 1 matrix." in sentence for sentence in section.findings)
    assert [drawing.name for drawing in section.drawings] == ["press_noise_float64", "press_noise_float32"]


def test_without_a_result_nothing_is_said_of_one_and_without_noise_nothing_is_drawn_over_its_logarithm() -> None:
    numbers = press_noise_numbers(pd.DataFrame({"state": ["planned"]}))
    assert press_noise_section(numbers).findings == ("No matrix was measured yet.",)
    section = press_noise_section(press_noise_numbers(frame_of(PressNoiseConfig(seed=1, size=40))))
    assert section.drawings == () and len(section.tables[0].body) == 1


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
