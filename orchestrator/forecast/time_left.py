"""How long a sweep still takes, from the work that it has done so far."""

from __future__ import annotations


def seconds_left(elapsed_s: float, done: float, left: float) -> float | None:
    """Return the seconds that the work `left` takes at the pace of the work `done`; None before
    there is any.

    Work is counted in trials, that of a running trial as the share of its epochs: so the estimate
    does not jump when a trial ends and the next one starts."""
    return elapsed_s * left / done if done > 0 else None
