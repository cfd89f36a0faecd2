"""Decide whether a trial runs again after its worker died."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from math import ceil

from orchestrator.worker import Ending, EndingKind

# The trial itself may be the cause of these losses.
MAX_LOST_MACHINES = 5
MORE_MEMORY = "use a smaller batch (--set training.batch_size=N) or a machine with more memory"


class Attempts:
    """Counts how often each trial's process died and how often its machine was lost."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._deaths: Counter[str] = Counter()
        self._losses: Counter[str] = Counter()
        self._alone_ids: set[str] = set()
        self._mate_limits: dict[str, int] = {}
        self._death_machines: dict[str, str] = {}

    def count_death(self, trial_id: str, ending: Ending) -> str | None:
        """Count the death of a process; return why the trial fails, or None if it runs again.

        A trial that ran out of memory gets one more attempt, alone.
        """
        if ending.short_of_memory:
            if trial_id in self._alone_ids:
                return f"{ending.cause}, even alone: {MORE_MEMORY}"
            self._alone_ids.add(trial_id)
            return None
        machine_lost = ending.kind is EndingKind.MACHINE_LEFT
        counts = self._losses if machine_lost else self._deaths
        counts[trial_id] += 1
        if self._losses[trial_id] >= MAX_LOST_MACHINES:
            return f"{EndingKind.MACHINE_LEFT} (in each of {self._losses[trial_id]} attempts)"
        count = counts[trial_id]
        if self._deaths[trial_id] >= self._limit:
            return f"{ending.cause} (in each of {count} attempts)" if count > 1 else ending.cause
        if ending.machine is not None and not machine_lost:
            self._death_machines[trial_id] = ending.machine
        return None

    def halve(self, trial_ids: Collection[str]) -> None:
        """Halve the number of these trials that may share a process, because their process died.

        Repeated halving isolates the trial that causes the deaths. No attempt is counted.
        """
        self._mate_limits |= dict.fromkeys(trial_ids, ceil(len(trial_ids) / 2))

    def mate_limit(self, trial_id: str, limit: int) -> int:
        """Return how many trials, including this one, may share a process: at most `limit`."""
        return min(limit, self._mate_limits.get(trial_id, limit))

    def must_run_alone(self, trial_id: str) -> bool:
        """Return whether the trial must run alone, because it ran out of memory before."""
        return trial_id in self._alone_ids

    def recount_losses(self, addresses: Collection[str]) -> None:
        """Count deaths on machines not in `addresses` as lost machines instead of failed attempts.

        The loss of a machine becomes known later than the death of its processes.
        """
        for trial_id, machine in list(self._death_machines.items()):
            if machine not in addresses:
                del self._death_machines[trial_id]
                self._deaths[trial_id] -= 1
                self._losses[trial_id] += 1
