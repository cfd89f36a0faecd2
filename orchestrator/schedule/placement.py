"""Which machines can take a pack, and what memory it asks for: a large trial is not put where it
does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from orchestrator.cluster import RunOptions, fit_on
from orchestrator.forecast import estimate
from orchestrator.worker import Place
from trainables.config import AnyConfig
from trainables.corpora import CorpusIdentity

STEP_BYTES = 250_000_000
"""Requests are rounded up to multiples of this: Ray hands a process on only to a pack that asks for
just as much."""


class Placement:
    """The machines that there are at a time, by Ray's ids."""

    def __init__(
        self,
        options: RunOptions,
        corpus: CorpusIdentity | None,
        machines: Mapping[str, Mapping[str, float]],
    ) -> None:
        """`machines` has Ray's resources of each; what memory trials need is known with the
        `corpus` they read."""
        self._options, self._corpus = options, corpus
        self._unfit: set[str] = set()
        self.update(machines)

    def update(self, machines: Mapping[str, Mapping[str, float]]) -> None:
        """These machines are there now."""
        fitting = {name: has for name, has in machines.items() if fit_on(has, self._options)}
        self._machines = {name: has for name, has in fitting.items() if name not in self._unfit}

    def keep_off(self, machine: str) -> None:
        """Put nothing on this machine any more."""
        self._unfit.add(machine)
        self._machines.pop(machine, None)

    @property
    def slots(self) -> int | None:
        """How many packs fit at a time; None where none does at the moment."""
        return sum(fit_on(has, self._options) for has in self._machines.values()) or None

    def place(self, configs: Sequence[AnyConfig], *, alone: bool = False) -> Place:
        """Return what a pack of these trials asks for: at most the memory of the largest machine,
        and all of it if the pack runs alone."""
        most = int(max((has.get("memory", 0) for has in self._machines.values()), default=0))
        memory_bytes = most if alone else min(self._estimate(configs), most)
        return Place(memory_bytes, tuple(sorted(self._unfit)))

    def has(self, place: Place) -> bool:
        """Return whether a machine has the memory that such a pack asks for; True also while there
        is no machine for any pack."""
        machines = self._machines.values()
        return not machines or any(has.get("memory", 0) >= place.memory_bytes for has in machines)

    def _estimate(self, configs: Sequence[AnyConfig]) -> int:
        """Bytes of memory; 0 where that is unknown."""
        if self._corpus is None:
            return 0
        largest = max((estimate(config, self._corpus).memory_gb for config in configs), default=0.0)
        return ceil(largest * 1e9 / STEP_BYTES) * STEP_BYTES
