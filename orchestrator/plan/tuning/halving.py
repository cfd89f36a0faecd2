"""Successive halving: which validation loss a trial needs after which epoch to be trained further.

The rule is that of Optuna's SuccessiveHalvingPruner (asynchronous successive halving, Li et al. 2020), turned into one
threshold for each rung: a trial can then be judged where it runs, without asking anybody.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

REDUCTION_FACTOR = 3
"""About the best third of the trials passes a rung."""
RUNGS = 2
"""The first one is after 1/9 of the epochs."""
EARLIEST = 3
"""And not before the end of the third epoch, where there are more: the first two tell nothing, or the contrary
(benchmarks/RESULTS.md)."""


def rung_epochs(epochs: int) -> tuple[int, ...]:
    """After which epochs of a whole trial of `epochs` it is judged: (111, 333) of 1,000, (3,) of 5, (1,) of 2.

    Optuna's pruner would go on to 999, where hardly anything is left to save.
    """
    first = max(min(EARLIEST, epochs - 1), epochs // REDUCTION_FACTOR**RUNGS)
    rungs = (first * REDUCTION_FACTOR**rung for rung in range(RUNGS))
    return tuple(epoch for epoch in rungs if 0 < epoch < epochs)


def thresholds(epochs: int, earlier: Iterable[Mapping[int, float]]) -> dict[int, float]:
    """For each rung that an earlier trial has reached: the greatest validation loss that passes it, in nats a token.

    `earlier` are the validation losses of earlier trials by epoch, also of those that the rung stopped. With m of them
    at a rung, the new trial passes if it is among the best max(1, (m + 1) // 3) of the m + 1, ties on its side.
    """
    trials = list(earlier)
    limits = {}
    for epoch in rung_epochs(epochs):
        losses = sorted(trial[epoch] for trial in trials if epoch in trial)
        if losses:
            passing = max(1, (len(losses) + 1) // REDUCTION_FACTOR)
            limits[epoch] = losses[passing - 1]
    return limits
