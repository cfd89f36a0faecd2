"""Estimate of a sweep's remaining time."""

from __future__ import annotations


def seconds_left(elapsed_s: float, done_work: float, remaining_work: float) -> float | None:
    """Return the seconds for `remaining_work` at the pace of `done_work`; None without done work.

    Work is in trials. A running trial counts by its share of epochs, so the estimate does not jump.
    """
    return elapsed_s * remaining_work / done_work if done_work > 0 else None
