"""Limits on retries of trials whose worker died."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from math import ceil

from orchestrator.worker import Ending, EndingKind

MOST_MACHINES_LOST = 5
"""A lost machine counts as no attempt, but after this many the trial may be the cause."""
MORE_MEMORY = "use a smaller batch (--set training.batch_size=N) or a machine with more memory"


class Attempts:
    """Deaths and lost machines, counted by trial id."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._deaths: Counter[str] = Counter()
        self._losses: Counter[str] = Counter()
        self._starved: set[str] = set()
        self._most_mates: dict[str, int] = {}
        """Limits for trials whose shared process died, by trial id."""
        self._died_on: dict[str, str] = {}
        """Address of the machine on which the process died, by id of an unfinished trial."""

    def failure(self, trial_id: str, ending: Ending) -> str | None:
        """Count a death; return why the trial fails, or None if it may run again.

        A trial that runs out of memory always gets one more attempt, alone, and none after that."""
        if ending.short_of_memory:
            if trial_id in self._starved:
                return f"{ending.cause}, alone too: {MORE_MEMORY}"
            self._starved.add(trial_id)
            return None
        lost = ending.kind is EndingKind.MACHINE_LEFT
        counts = self._losses if lost else self._deaths
        counts[trial_id] += 1
        if self._losses[trial_id] >= MOST_MACHINES_LOST:
            return f"{EndingKind.MACHINE_LEFT} (in each of {self._losses[trial_id]} attempts)"
        count = counts[trial_id]
        if self._deaths[trial_id] >= self._most:
            return f"{ending.cause} (in each of {count} attempts)" if count > 1 else ending.cause
        if ending.machine is not None and not lost:
            self._died_on[trial_id] = ending.machine
        return None

    def halve(self, trial_ids: Collection[str]) -> None:
        """Halve the number of these trials that may run together, since their shared process died.

        Repeated halving isolates the unknown cause. No attempt is counted."""
        self._most_mates |= dict.fromkeys(trial_ids, ceil(len(trial_ids) / 2))

    def most_mates(self, trial_id: str, most: int) -> int:
        """Return how many trials, up to `most`, may run with this one (included)."""
        return min(most, self._most_mates.get(trial_id, most))

    def starved(self, trial_id: str) -> bool:
        """Return whether the trial ran out of memory and must run alone."""
        return trial_id in self._starved

    def machines_left(self, present: Collection[str]) -> None:
        """Recount deaths on machines that are not `present` as lost machines, not as attempts.

        A process's death is known at once, its machine's loss only later."""
        for trial_id, machine in list(self._died_on.items()):
            if machine not in present:
                del self._died_on[trial_id]
                self._deaths[trial_id] -= 1
                self._losses[trial_id] += 1

    def ended(self, trial_id: str) -> None:
        """Forget the address recorded for a trial that has ended."""
        self._died_on.pop(trial_id, None)
