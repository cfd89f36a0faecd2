"""Which machines can take a pack, and what memory it asks for: a large trial is not put where it does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

from orchestrator.cluster.resources import fit_on
from orchestrator.plan.estimates import estimate
from orchestrator.schedule.packs import Pack
from orchestrator.schedule.schedule_options import ScheduleOptions
from orchestrator.store.records import PlannedTrial
from trainables.config.kinds import AnyConfig, read_config

STEP_BYTES = 250_000_000
"""Requests are rounded up to multiples of this: Ray hands a process on only to a pack that asks for just as much."""


@dataclass(frozen=True)
class Place:
    """What a pack asks of the machine that it runs on."""

    memory_bytes: int
    """0 where that is unknown."""
    not_on: tuple[str, ...]
    """Machines that must not get it, by Ray's ids."""
    gpu_gb: float | None
    """The memory of a GPU on which it may run; None without GPUs."""


class Placement:
    """The machines that there are at a time, by Ray's ids, and what is known of them."""

    def __init__(
        self, options: ScheduleOptions, machines: Mapping[str, Mapping[str, float]], gpu_gb: Mapping[str, float]
    ) -> None:
        """`machines`: Ray's resources of each; `gpu_gb`: the memory of its smallest GPU in GB, where that is known."""
        self._options, self._gpu_gb = options, dict(gpu_gb)
        self._strange: set[str] = set()
        self.update(machines)

    def update(self, machines: Mapping[str, Mapping[str, float]]) -> None:
        """These machines are there now."""
        fitting = {name: has for name, has in machines.items() if fit_on(has, self._options)}
        self._machines = {name: has for name, has in fitting.items() if name not in self._strange}

    def keep_off(self, machine: str, gpu_gb: float | None) -> None:
        """Put nothing on this machine any more; with its GPU's memory, nothing that needs more than that."""
        if gpu_gb is not None:
            self._gpu_gb[machine] = gpu_gb
            return
        self._strange.add(machine)
        self._machines.pop(machine, None)

    @property
    def slots(self) -> int | None:
        """How many packs fit at a time; None where none does at the moment."""
        return sum(fit_on(has, self._options) for has in self._machines.values()) or None

    def place(self, configs: Sequence[AnyConfig]) -> Place:
        """What a pack of these trials asks for: never more memory than the largest machine has, where it runs alone."""
        least = self._least_gb(whole_gpu_gb(configs, self._options))
        not_on = tuple(sorted(self._strange | self._too_small(least)))
        most = max((memory for name, memory in self._memory().items() if name not in not_on), default=0)
        return Place(min(self._wanted(configs), most), not_on, least)

    def anywhere(self, configs: Sequence[AnyConfig]) -> int:
        """What these trials ask for, in bytes, where every machine must be able to take them, whichever leaves."""
        return min(self._wanted(configs), *self._memory().values()) if self._machines else 0

    def has(self, place: Place) -> bool:
        """Whether a machine is there that such a pack can be put on; True, too, where none is there for any pack."""
        fitting = (name not in place.not_on and memory >= place.memory_bytes for name, memory in self._memory().items())
        return not self._machines or any(fitting)

    def barred(self, pack: Pack) -> int:
        """Of how many packs that fit on the machines at a time this one cannot be one."""
        if not self._sizes_differ():
            return 0
        least = self._least_gb(whole_gpu_gb(configs_of(pack.trials), self._options))
        return sum(fit_on(self._machines[name], self._options) for name in self._too_small(least))

    def _wanted(self, configs: Sequence[AnyConfig]) -> int:
        """Bytes; 0 where that is unknown."""
        if self._options.corpus is None:
            return 0
        corpus = self._options.corpus
        largest = max((estimate(config, corpus).memory_gb for config in configs), default=0.0)
        return ceil(largest * 1e9 / STEP_BYTES) * STEP_BYTES

    def _memory(self) -> dict[str, int]:
        return {name: int(has.get("memory", 0)) for name, has in self._machines.items()}

    def _sizes(self) -> dict[str, float]:
        return {name: memory for name, memory in self._gpu_gb.items() if name in self._machines}

    def _sizes_differ(self) -> bool:
        return len(set(self._sizes().values())) > 1

    def _least_gb(self, need_gb: float | None) -> float | None:
        """The need, or the largest GPU that is known where none has as much: it is tried there."""
        return None if need_gb is None else min(need_gb, max(self._sizes().values(), default=need_gb))

    def _too_small(self, least_gb: float | None) -> set[str]:
        """The machines with a GPU that has less memory than this."""
        return set() if least_gb is None else {name for name, memory in self._sizes().items() if memory < least_gb}


def whole_gpu_gb(configs: Sequence[AnyConfig], options: ScheduleOptions) -> float | None:
    """The memory in GB of the smallest GPU on which each of these trials fits into its share; None without GPUs."""
    if not options.gpus_per_trial or options.corpus is None:
        return None
    largest = max((estimate(config, options.corpus).gpu_memory_gb for config in configs), default=0.0)
    return largest / options.gpus_per_trial


def configs_of(trials: Sequence[PlannedTrial]) -> list[AnyConfig]:
    """The trials' configs."""
    return [read_config(trial.config) for trial in trials]
