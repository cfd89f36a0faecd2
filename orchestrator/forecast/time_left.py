"""Estimate of a sweep's remaining time."""

from __future__ import annotations


def seconds_left(elapsed_s: float, done: float, left: float) -> float | None:
    """Return the seconds for the work `left` at the pace of the work `done`; None if nothing is
    done.

    Work is counted in trials. A running trial counts by its share of epochs, so that the estimate
    does not jump when a trial ends."""
    return elapsed_s * left / done if done > 0 else None
