"""What the results of press_noise trials become: lines in order, the law and the printed ranks beside."""

from __future__ import annotations

import pandas as pd
import pytest

from orchestrator.analysis.press_noise import RANKS, press_noise_numbers
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


def test_lines_are_ordered_by_precision_and_noise_and_predicted_by_the_law(frame: pd.DataFrame) -> None:
    numbers = press_noise_numbers(frame)
    order = [(line.precision, line.variance) for line in numbers.noise]
    assert order == [("float64", 1e-2), ("float64", 1e-25), ("float64", 1e-28), ("float32", 1e-7)]
    for line in numbers.noise:
        assert line.counted[0]["press_rank"] == pytest.approx(line.predicted, abs=3)
        assert 0 < line.noise_share < 1


def test_printed_ranks_stand_beside_float64_alone(frame: pd.DataFrame) -> None:
    first, middle, least, single = press_noise_numbers(frame).noise
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
