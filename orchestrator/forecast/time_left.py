"""Estimate of a sweep's remaining time."""

from __future__ import annotations


def seconds_left(elapsed_s: float, done_work: float, remaining_work: float) -> float | None:
    """Return the remaining seconds at the pace so far; None if no work is done.

    Work is counted in trials. A running trial counts by its share of epochs, so that the estimate
    does not jump.
    """
    return elapsed_s * remaining_work / done_work if done_work > 0 else None
