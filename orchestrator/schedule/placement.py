"""Find machines with enough memory for packs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import ceil

from orchestrator.cluster import RunOptions, fit_on
from orchestrator.forecast import estimate
from orchestrator.worker import MachineRequest
from trainables.config import AnyConfig
from trainables.corpora import CorpusIdentity

# Memory requests are multiples of this: Ray reuses a process only for an equal request.
STEP_BYTES = 250_000_000


class Placement:
    """The machines that can run packs."""

    def __init__(
        self,
        options: RunOptions,
        corpus: CorpusIdentity | None,
        machines: Mapping[str, Mapping[str, float]],
    ) -> None:
        """Start with `machines`: resources by Ray's node id.

        Without `corpus`, no memory is requested.
        """
        self._options, self._corpus = options, corpus
        self.update(machines)

    def update(
        self,
        machines: Mapping[str, Mapping[str, float]],
        unfit: Iterable[str] = (),
        bad: Iterable[str] = (),
    ) -> None:
        """Replace the machines with the current machines of the cluster.

        Uses no `unfit` machine, and a `bad` one only if there is no other.
        """
        fit_machines = {
            name: machines[name]
            for name in machines.keys() - unfit
            if fit_on(machines[name], self._options)
        }
        self._machines = {
            name: fit_machines[name] for name in fit_machines.keys() - bad
        } or fit_machines
        self.bad = {*bad}
        self.excluded = self.bad.union(unfit) - self._machines.keys()
        """Machines that get no packs."""

    @property
    def slots(self) -> int | None:
        """Number of packs that can run at a time; None if no machine can run a pack now."""
        return sum(fit_on(node, self._options) for node in self._machines.values()) or None

    def request(self, configs: Sequence[AnyConfig], *, alone: bool = False) -> MachineRequest:
        """Return the memory that a pack requests: at most all memory of the largest machine.

        If `alone`, the pack requests all of that memory.
        """
        limit_bytes = self._largest_bytes
        memory_bytes = limit_bytes if alone else min(self._estimate(configs), limit_bytes)
        return MachineRequest(memory_bytes, tuple(sorted(self.excluded)))

    def fits(self, request: MachineRequest) -> bool:
        """Return whether a machine has enough memory and the request excludes the right machines.

        True if there is no machine at all.
        """
        return not self._machines or (
            request.memory_bytes <= self._largest_bytes
            and self.excluded == {*request.excluded_machines}
        )

    @property
    def _largest_bytes(self) -> int:
        return int(max((node.get("memory", 0) for node in self._machines.values()), default=0))

    def _estimate(self, configs: Sequence[AnyConfig]) -> int:
        if self._corpus is None:
            return 0
        size_gb = max((estimate(config, self._corpus).memory_gb for config in configs), default=0.0)
        return ceil(size_gb * 1e9 / STEP_BYTES) * STEP_BYTES
