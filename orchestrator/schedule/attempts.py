"""How often a trial is started again after its worker died, and which deaths are not its fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from math import ceil

from orchestrator.worker import Ending, EndingKind

MOST_MACHINES_LOST = 5
"""A trial whose machine leaves the cluster goes on elsewhere, and it counts as no attempt; a trial
that loses so many may be what brings them down."""
MORE_MEMORY = (
    "train with a smaller batch (--set training.batch_size=N), or where there is more memory"
)


class Attempts:
    """Counts, by trial id, the attempts that ended in a death and the machines lost."""

    def __init__(self, most: int) -> None:
        """`most` attempts has a trial."""
        self._most = most
        self._deaths: Counter[str] = Counter()
        self._losses: Counter[str] = Counter()
        self._starved: set[str] = set()
        self._most_mates: dict[str, int] = {}
        """By id of a trial that ran with others when their process died, with how many it may run
        next, itself counted."""
        self._died_on: dict[str, str] = {}
        """Trials that go on after their process died, each with the address of its machine."""

    def failure(self, trial_id: str, ending: Ending) -> str | None:
        """Count a death; where it was the last one that the trial may have, why it fails.

        One that runs out of memory gets another attempt in any case, alone, and no more after
        that."""
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
        """The process that ran all these trials died, and nobody knows by whose fault: they go on
        in halves, and in halves again, until the one at fault is alone. It counts as no attempt."""
        self._most_mates |= dict.fromkeys(trial_ids, ceil(len(trial_ids) / 2))

    def most_mates(self, trial_id: str, most: int) -> int:
        """Return how many trials, at `most`, may run with this one, itself counted."""
        return min(most, self._most_mates.get(trial_id, most))

    def starved(self, trial_id: str) -> bool:
        """Return whether the trial has run out of memory and has to run alone."""
        return trial_id in self._starved

    def machines_left(self, present: Collection[str]) -> None:
        """Only machines of these addresses are there now: what died with another one died by no
        fault of its own.

        That a process died is known at once, and that its whole machine did only some time later.
        """
        for trial_id, machine in list(self._died_on.items()):
            if machine not in present:
                del self._died_on[trial_id]
                self._deaths[trial_id] -= 1
                self._losses[trial_id] += 1

    def ended(self, trial_id: str) -> None:
        """The trial has come to its end, so nothing of it has to be judged any more."""
        self._died_on.pop(trial_id, None)
