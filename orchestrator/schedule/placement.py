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


WHOLE = ("CPU", "GPU")
"""What nobody else can be without: who has all of it, and all of the memory, has the machine."""


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
        """What a pack of these trials asks for: never more memory than the largest machine has,
        where it runs alone.

        One that has to be `alone` asks for all that this machine has.
        """
        largest = max(self._machines.values(), key=lambda has: has.get("memory", 0), default={})
        most = int(largest.get("memory", 0))
        memory_bytes = most if alone else min(self._estimate(configs), most)
        whole = {name: largest[name] for name in WHOLE if largest.get(name)} if alone else {}
        return Place(memory_bytes, tuple(sorted(self._unfit)), whole)

    def has(self, place: Place) -> bool:
        """Whether a machine is there that such a pack can be put on; True, too, where none is there
        for any pack."""
        needs = {"memory": place.memory_bytes, **place.whole}
        machines = self._machines.values()
        return not machines or any(
            all(has.get(name, 0) >= need for name, need in needs.items()) for has in machines
        )

    def _estimate(self, configs: Sequence[AnyConfig]) -> int:
        """Bytes of memory; 0 where that is unknown."""
        if self._corpus is None:
            return 0
        largest = max((estimate(config, self._corpus).memory_gb for config in configs), default=0.0)
        return ceil(largest * 1e9 / STEP_BYTES) * STEP_BYTES
