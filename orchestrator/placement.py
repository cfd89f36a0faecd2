"""What memory trials ask for, so that one under a mixture of softmaxes is not put where it does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from orchestrator.estimates import estimate
from orchestrator.execution import ScheduleOptions
from orchestrator.packs import Pack
from orchestrator.resources import fit_on
from orchestrator.store.records import PlannedTrial
from trainables.any_config import AnyConfig, read_config

STEP_BYTES = 250_000_000
"""Requests are rounded up to multiples of this: Ray hands a process on only to a pack that asks for just as much."""


class MemoryNeeds:
    """What packs ask for of machines: never more than the largest has, where they then run alone."""

    def __init__(
        self,
        options: ScheduleOptions,
        machines: Mapping[str, Mapping[str, float]],
        gpu_gb: Mapping[str, float],
    ) -> None:
        """By Ray's id of a machine: its resources, and the memory of its smallest GPU in GB where that is known."""
        self._options, self._machines, self._gpu_gb = options, machines, gpu_gb
        self._most_bytes = max((int(machine.get("memory", 0)) for machine in machines.values()), default=0)

    def of(self, configs: Sequence[AnyConfig]) -> int:
        """What the largest of these trials needs, in bytes, while it trains or is measured; 0 where that is unknown."""
        if self._options.corpus is None:
            return 0
        corpus = self._options.corpus
        largest = max((estimate(config, corpus).memory_gb for config in configs), default=0.0)
        return min(ceil(largest * 1e9 / STEP_BYTES) * STEP_BYTES, self._most_bytes)

    def too_small(self, configs: Sequence[AnyConfig]) -> list[str]:
        """The machines, by Ray's ids, with a GPU on which one of these trials does not fit into its share.

        Where all that are known are too small, only the largest remain.
        """
        if len(set(self._gpu_gb.values())) < 2:
            return []
        need = _gpu_gb(configs, self._options)
        if need is None:
            return []
        least = min(need, max(self._gpu_gb.values()))
        return sorted(machine for machine, memory in self._gpu_gb.items() if memory < least)

    def barred(self, pack: Pack) -> int:
        """Of how many packs that fit on the machines at a time this one cannot be one."""
        configs = [read_config(trial.config) for trial in pack.trials] if self._gpu_gb else []
        return sum(fit_on(self._machines[machine], self._options) for machine in self.too_small(configs))


def gpu_gb_of(trials: Sequence[PlannedTrial], options: ScheduleOptions) -> float | None:
    """The memory in GB of the smallest GPU on which each of these trials fits into its share; None without GPUs."""
    return _gpu_gb([read_config(trial.config) for trial in trials], options)


def _gpu_gb(configs: Sequence[AnyConfig], options: ScheduleOptions) -> float | None:
    if not options.gpus_per_trial or options.corpus is None:
        return None
    largest = max((estimate(config, options.corpus).gpu_memory_gb for config in configs), default=0.0)
    return largest / options.gpus_per_trial
