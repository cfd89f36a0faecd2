"""Packs: every trial in exactly one, in order, of a sensible size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.schedule.packs import pack, pack_size
from tests.support.store_rows import plan


@given(trials=st.integers(0, 60), slots=st.integers(1, 9), seconds=st.floats(1e-4, 1e5))
def test_every_trial_is_in_exactly_one_pack_and_order_is_kept(
    trials: int, slots: int, seconds: float
) -> None:
    packs = pack(plan(trials), slots=slots, seconds_per_trial=seconds)
    assert all(part.trials for part in packs)
    assert [trial for part in packs for trial in part.trials] == plan(trials)


@pytest.mark.parametrize(
    ("trials", "slots", "seconds", "size"),
    [
        (72, 2, 16.0, 1),  # the quick grid: one by one
        (1000, 2, 0.001, 100),  # nothing to do: as large as packs get
        (72, 2, 2.5, 4),  # 10 s of work
        (72, 8, 2.0, 3),  # at least four packs for each of eight slots
        (50, 2, 0.1, 10),  # 5 s in all: never cut below a second
        (3, 1, 1e6, 1),
    ],
)
def test_packs_last_ten_seconds_unless_slots_would_run_dry(
    trials: int, slots: int, seconds: float, size: int
) -> None:
    assert pack_size(trials, slots=slots, seconds_per_trial=seconds) == size
