"""The time left of a study that runs elsewhere, as its page says it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from orchestrator.view.source import time_left


@pytest.mark.parametrize("workers", [1, 4, 8])
def test_it_is_right_and_does_not_jump_at_the_end_of_a_trial(workers: int) -> None:
    """24 trials of 40 s, one starting as another one ends, 8 epochs each; the machines take 10 s to
    start."""
    trials, trial_s, start_s = 24, 40, 10
    said = []
    end_s = start_s + trials // workers * trial_s
    for now_s in range(start_s + trial_s, end_s):
        ended = (now_s - start_s) // trial_s * workers
        share = (now_s - start_s) % trial_s // 5 / 8
        said.append(
            (end_s - now_s, time_left(now_s, ended, [share] * workers, trials - ended - workers))
        )
    assert all(abs(left - truth) <= 0.4 * truth + 10 for truth, left in said)
    assert max(abs(later - left) for (_, left), (_, later) in pairwise(said)) < 0.15 * end_s


def test_epochs_of_an_earlier_run_are_not_work_of_this_one() -> None:
    assert time_left(25, 1, [], 100, [39 / 40] * 3) == pytest.approx(25 * (100 + 3 / 40))
