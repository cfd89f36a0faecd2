"""The time left of a sweep, against sweeps whose end is known."""

from __future__ import annotations

from itertools import pairwise

import pytest

from orchestrator.forecast import seconds_left


@pytest.mark.parametrize("workers", [1, 4, 8])
def test_it_is_right_and_does_not_jump(workers: int) -> None:
    """24 trials of 40 s, one starting as another one ends, 8 epochs each; the machines take 10 s to
    start."""
    trials, trial_s, start_s = 24, 40, 10
    estimates = []
    end_s = start_s + trials // workers * trial_s
    for now_s in range(start_s + trial_s, end_s):
        ended = (now_s - start_s) // trial_s * workers
        share = (now_s - start_s) % trial_s // 5 / 8
        done = ended + share * workers
        left = seconds_left(now_s, done, trials - done)
        assert left is not None
        estimates.append((end_s - now_s, left))
    assert all(abs(left - truth) <= 0.4 * truth + 10 for truth, left in estimates)
    jumps = [abs(later - left) for (_, left), (_, later) in pairwise(estimates)]
    assert max(jumps) < 0.15 * end_s


def test_before_any_work_there_is_no_estimate() -> None:
    assert seconds_left(10, 0, 5) is None
