"""How often a trial is started again after its worker died, and which deaths are not its fault."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

from orchestrator.schedule.study_work import MACHINE_LEFT

MOST_MACHINES_LOST = 5
"""A trial whose machine leaves the cluster goes on elsewhere, and it counts as no attempt; a trial that loses so many
may be what brings them down."""


class Attempts:
    """Counts, by trial id, the attempts that ended in a death and the machines lost."""

    def __init__(self, most: int) -> None:
        """`most` attempts has a trial."""
        self._most = most
        self._deaths: Counter[str] = Counter()
        self._losses: Counter[str] = Counter()
        self._died_on: dict[str, str] = {}
        """Trials that go on after their process died, each with the address of its machine."""

    def failure(self, trial_id: str, cause: str, machine: str | None) -> str | None:
        """Count a death for `cause` on the machine of this address; where it was the last, why the trial fails."""
        lost = cause == MACHINE_LEFT
        counts = self._losses if lost else self._deaths
        counts[trial_id] += 1
        count = counts[trial_id]
        if self._losses[trial_id] >= MOST_MACHINES_LOST:
            return f"{MACHINE_LEFT} (in each of {self._losses[trial_id]} attempts)"
        if self._deaths[trial_id] >= self._most:
            return f"{cause} (in each of {count} attempts)" if count > 1 else cause
        if machine is not None and not lost:
            self._died_on[trial_id] = machine
        return None

    def machines_left(self, present: Collection[str]) -> None:
        """Only machines of these addresses are there now: what died with another one died by no fault of its own.

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
