"""Which machines can take a pack, and what memory it asks for: a large trial is not put where it
does not fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from orchestrator.cluster import RunOptions, fit_on
from orchestrator.forecast import estimate
from trainables.config import AnyConfig
from trainables.corpora import CorpusIdentity

STEP_BYTES = 250_000_000
"""Requests are rounded up to multiples of this: Ray hands a process on only to a pack that asks for
just as much."""


class Placement:
    """The machines that there are at a time."""

    def __init__(
        self,
        options: RunOptions,
        corpus: CorpusIdentity | None,
        machines: Sequence[Mapping[str, float]],
    ) -> None:
        """`machines` has Ray's resources of each; what memory trials need is known with the
        `corpus` they read."""
        self._options, self._corpus = options, corpus
        self.update(machines)

    def update(self, machines: Sequence[Mapping[str, float]]) -> None:
        """These machines are there now."""
        self._machines = [has for has in machines if fit_on(has, self._options)]

    @property
    def slots(self) -> int | None:
        """How many packs fit at a time; None where none does at the moment."""
        return sum(fit_on(has, self._options) for has in self._machines) or None

    def memory_bytes(self, configs: Sequence[AnyConfig], *, alone: bool = False) -> int:
        """Return what a pack of these trials asks for: at most the memory of the largest machine,
        and all of it if the pack runs alone."""
        most = int(max((has.get("memory", 0) for has in self._machines), default=0))
        return most if alone else min(self._estimate(configs), most)

    def has(self, memory_bytes: int) -> bool:
        """Return whether a machine has that memory; True also while there is no machine for any
        pack."""
        machines = self._machines
        return not machines or any(has.get("memory", 0) >= memory_bytes for has in machines)

    def _estimate(self, configs: Sequence[AnyConfig]) -> int:
        """Bytes of memory; 0 where that is unknown."""
        if self._corpus is None:
            return 0
        largest = max((estimate(config, self._corpus).memory_gb for config in configs), default=0.0)
        return ceil(largest * 1e9 / STEP_BYTES) * STEP_BYTES
