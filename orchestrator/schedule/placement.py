"""Placement of packs on machines with enough memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from orchestrator.cluster import RunOptions, fit_on
from orchestrator.forecast import estimate
from orchestrator.worker import Place
from trainables.config import AnyConfig
from trainables.corpora import CorpusIdentity

STEP_BYTES = 250_000_000
"""Requests are multiples of this: Ray reuses a process only for an equal request."""


class Placement:
    """The machines that are present, by Ray's node id."""

    def __init__(
        self,
        options: RunOptions,
        corpus: CorpusIdentity | None,
        machines: Mapping[str, Mapping[str, float]],
    ) -> None:
        """`machines` holds Ray's resources. Memory needs are known only with a `corpus`."""
        self._options, self._corpus = options, corpus
        self._unfit: set[str] = set()
        self.update(machines)

    def update(self, machines: Mapping[str, Mapping[str, float]]) -> None:
        """Replace the machines that are present."""
        fitting = {name: has for name, has in machines.items() if fit_on(has, self._options)}
        self._machines = {name: has for name, has in fitting.items() if name not in self._unfit}

    def keep_off(self, machine: str) -> None:
        """Exclude this machine from now on."""
        self._unfit.add(machine)
        self._machines.pop(machine, None)

    @property
    def slots(self) -> int | None:
        """Number of packs that fit at a time; None if no pack fits now."""
        return sum(fit_on(has, self._options) for has in self._machines.values()) or None

    def place(self, configs: Sequence[AnyConfig], *, alone: bool = False) -> Place:
        """Return the request of a pack: at most the memory of the largest machine, all of it if
        `alone`."""
        most = int(max((has.get("memory", 0) for has in self._machines.values()), default=0))
        memory_bytes = most if alone else min(self._estimate(configs), most)
        return Place(memory_bytes, tuple(sorted(self._unfit)))

    def has(self, place: Place) -> bool:
        """Return whether a machine has the requested memory, or no machine fits any pack now."""
        machines = self._machines.values()
        return not machines or any(has.get("memory", 0) >= place.memory_bytes for has in machines)

    def _estimate(self, configs: Sequence[AnyConfig]) -> int:
        """Return bytes; 0 if unknown."""
        if self._corpus is None:
            return 0
        largest = max((estimate(config, self._corpus).memory_gb for config in configs), default=0.0)
        return ceil(largest * 1e9 / STEP_BYTES) * STEP_BYTES
