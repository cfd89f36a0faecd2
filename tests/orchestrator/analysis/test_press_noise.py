"""Expected values come from an integral, random matrices and printed ranks."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from orchestrator.analysis import (
    COUNT_SPREAD,
    RANKS,
    press_noise_numbers,
    rank_at_printed_size,
    rank_with_noise,
    share_below,
)
from orchestrator.report.sections.press_noise import press_noise_section
from orchestrator.report.sections.section import NOTHING
from search_spaces.published import rows
from trainables.config import PressNoiseConfig
from trainables.config.measurement_names import PRESS_NOISE
from trainables.experiments.press_noise import measure
from trainables.runtime import Runtime

CONFIGS = (
    PressNoiseConfig(seed=1, size=60, noise_variance=1e-28),
    PressNoiseConfig(seed=1, size=60, noise_variance=1e-25),
    PressNoiseConfig(seed=1, size=60, noise_variance=1e-2),
    PressNoiseConfig(seed=1, size=60, noise_variance=1e-7, precision="float32"),
    PressNoiseConfig(seed=1, size=60, round_trips=2),
)


def frame_of(*configs: PressNoiseConfig) -> pd.DataFrame:
    records = []
    for config in configs:
        metrics = measure(config, Runtime())[PRESS_NOISE].metrics
        records.append({**config.model_dump(), **metrics, "state": "done"})
    return pd.DataFrame([*records, {**configs[0].model_dump(), "state": "failed"}])


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return frame_of(*CONFIGS)


def test_matrices_have_printed_ranks(frame: pd.DataFrame) -> None:
    noise = press_noise_numbers(frame).noise
    order = list(zip(noise["precision"], noise["noise_variance"], strict=True))
    assert order == [("float64", 1e-2), ("float64", 1e-25), ("float64", 1e-28), ("float32", 1e-7)]
    law = noise["press_rank_predicted"].astype(float)
    assert (noise["press_rank"] - law).abs().max() <= COUNT_SPREAD
    printed = noise[[f"printed_{rank}" for rank in RANKS]].to_numpy().tolist()
    blanks = [None] * 3
    assert printed == [[10_000, *blanks], [10, 7, 10, 10], [10, *blanks], [None, *blanks]]


def test_round_trips_have_printed_ranks(frame: pd.DataFrame) -> None:
    trips = press_noise_numbers(frame).trips
    ranks = trips[["round_trip", "press_rank", "printed_press_rank"]].to_numpy().tolist()
    assert ranks == [[1, 10, 10], [2, 10, 10]]
    assert list(trips["printed_error"]) == pytest.approx([0.97e-28, 0.99e-28])
    assert trips["error"].iloc[-1] < 1e-27


def test_section_compares_with_printed_size(frame: pd.DataFrame) -> None:
    section = press_noise_section(press_noise_numbers(frame))
    assert [len(table.body) for table in section.texts] == [4, 2]
    numbers_of = [finding.numbers for finding in section.findings]
    assert numbers_of[0]["printed"] == 3 and numbers_of[0]["law_off"] < 5e-5
    moved = [numbers["moved"] for numbers in numbers_of if "moved" in numbers]
    assert moved == [[0.01], []]
    assert "is 10 after 2 of 2 round trips" in section.sentences[-1]
    for drawing in section.drawings:
        drawing.draw()


def test_printed_size_compares_counts() -> None:
    row = dict.fromkeys((f"noisy_{rank}" for rank in RANKS), 6869)
    config = PressNoiseConfig(seed=1, noise_variance=1e-23).model_dump()
    numbers = press_noise_numbers(
        pd.DataFrame([{**config, **row, "noisy_press_tolerance": 1e-14, "state": "done"}])
    )
    [first, *_] = press_noise_section(numbers).sentences
    assert "by at most 0.06%" in first and "differ from them by at most 0.00%" in first
    assert "gives at most 10 " in first and "6,869 is printed" in first


def test_missing_measurements_are_reported() -> None:
    numbers = press_noise_numbers(pd.DataFrame({"state": ["planned"]}))
    assert press_noise_section(numbers) is NOTHING
    section = press_noise_section(press_noise_numbers(frame_of(PressNoiseConfig(seed=1, size=40))))
    assert section.drawings == () and len(section.texts[0].body) == 1


def test_law_gives_printed_ranks() -> None:
    """The ranks of SM Table 15 follow from the law without a fit.

    Singular values must first be divided by the largest one.
    """
    printed = {
        float(row["noise_c"]): int(row["press_rank"]) for row in rows("sm_table15_16_press_noise")
    }
    for c, rank in printed.items():
        assert rank_at_printed_size(c) == pytest.approx(rank, rel=0.01), c
    for variance in (1e-23, 1e-23 * 10_000**2):
        assert rank_at_printed_size(variance, sigma_max=10_000 * math.log(10_000)) == 10


def test_distribution_integrates_quarter_circle() -> None:
    for x in (0.01, 0.3, 1.0, 1.7, 1.999, 2.0):
        # With t = 2 sin(a), the density sqrt(4 - t^2) / pi is smooth up to its edge.
        a = np.linspace(0, math.asin(x / 2), 20_001)
        integral = np.trapezoid(4 * np.cos(a) ** 2 / math.pi, a)
        assert share_below(x) == pytest.approx(integral, abs=1e-9)
    assert (share_below(-1), share_below(0), share_below(2), share_below(3)) == (0, 0, 1, 1)


def test_noiseless_rank_is_exact() -> None:
    assert rank_with_noise(1e-9, variance=0.0, size=100, rank=7) == 7
    assert rank_with_noise(1e-9, variance=1e-6, size=20, rank=20) == 20
