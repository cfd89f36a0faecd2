"""What memory a trial asks for, so that one under a mixture of softmaxes is not put where it does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from orchestrator.estimates import estimate
from orchestrator.execution import ScheduleOptions
from orchestrator.store.records import PlannedTrial
from trainables.any_config import AnyConfig, read_config

STEP_BYTES = 250_000_000
"""Requests are rounded up to multiples of this: Ray hands a process on only to a pack that asks for just as much."""


class MemoryNeeds:
    """What packs ask for of a machine's memory, never more than the largest machine has: there it then runs alone."""

    def __init__(self, options: ScheduleOptions, machines: Sequence[Mapping[str, float]]) -> None:
        """`machines`: Ray's resources of each."""
        self._corpus = options.corpus
        self._most_bytes = max((int(machine.get("memory", 0)) for machine in machines), default=0)

    def of(self, configs: Sequence[AnyConfig]) -> int:
        """What the largest of these trials needs, in bytes, while it trains or is measured; 0 where that is unknown."""
        if self._corpus is None:
            return 0
        largest = max((estimate(config, self._corpus).memory_gb for config in configs), default=0.0)
        return min(ceil(largest * 1e9 / STEP_BYTES) * STEP_BYTES, self._most_bytes)


def gpu_gb_of(trials: Sequence[PlannedTrial], options: ScheduleOptions) -> float | None:
    """The memory in GB of the smallest GPU on which each of these trials fits into its share; None without GPUs."""
    if not options.gpus_per_trial or options.corpus is None:
        return None
    configs = (read_config(trial.config) for trial in trials)
    largest = max((estimate(config, options.corpus).gpu_memory_gb for config in configs), default=0.0)
    return largest / options.gpus_per_trial
