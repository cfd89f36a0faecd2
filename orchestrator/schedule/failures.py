"""Decide when failed trials stop a run, and which machines get no more of its trials."""

from __future__ import annotations

from collections import Counter, defaultdict

from orchestrator.store import cause_key
from orchestrator.words import counted
from trainables.errors import UserError, first_line
from trainables.trial_folder import TrialOutcome

# Without `--max-failures`, a run stops if all of its first trials fail.
FIRST_TRIALS = 10
# Successive failures on a machine, or on one of its GPUs, after which it gets no more trials.
STREAK = 3


class Failures:
    """Counts the failed trials of this driver's workers, by cause and machine."""

    def __init__(self, limit: int | None) -> None:
        self._limit, self._later_limit = limit or FIRST_TRIALS, limit
        self.places: dict[str, tuple[str, str]] = {}
        """Machine (Ray's node id), and host with GPU, of trials that this driver's workers started.
        Empty for trials that are only measured."""
        self._streaks = Counter[tuple[str, str]]()
        self._groups: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        """Cause and machine of each failed trial, by the cause's key."""
        self.bad_machines: dict[str, str] = {}
        """Machines on which trials keep failing (Ray's node ids), each with a sentence."""

    def count(self, outcome: TrialOutcome) -> None:
        """Count the trial if it is in `places`. Raises UserError to stop the run."""
        place = self.places.pop(outcome.trial_id, None)
        if place is None:
            return
        if outcome.state != "failed":
            self._limit = self._later_limit or 0
            self._streaks[place] = 0
            return
        machine, host = place
        cause = first_line(outcome.cause or "")
        group = self._groups[cause_key(cause)]
        group.append((cause, machine))
        self._streaks[place] += 1
        machines = {name for _, name in group}
        if len(machines) > 1:  # not a machine's fault
            for name in machines:
                self.bad_machines.pop(name, None)
        elif self._streaks[place] >= STREAK:
            self.bad_machines[machine] = (
                f"The machine of {host} gets no more trials, because the last {STREAK} failed, and "
                f"no other machine had this cause: {cause}. `retry` runs failed trials again."
            )
        groups = self._groups.values()
        if sum(map(len, groups)) == self._limit:
            common = max(groups, key=len)
            raise UserError(
                f"Stopped after {counted(self._limit, 'failed trial')} (--max-failures N changes "
                f"this), {len(common)} with this cause: {common[0][0]}. Correct it, then run the "
                "failed trials with `retry` and the others with the same command."
            )
