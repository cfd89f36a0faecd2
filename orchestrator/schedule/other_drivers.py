"""Trials of a sweep that another driver runs: they are waited for, and taken over where that driver died."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence, Set

from orchestrator.store.lease import LEASE_S, expire_dead_owners
from orchestrator.store.records import OPEN, PlannedTrial
from orchestrator.store.store import Store
from trainables.trial_folder.outcome import TrialOutcome

POLL_S = 2.0
"""How often the store is asked about them."""


class ForeignTrials:
    """Those that are waited for."""

    def __init__(self, store: Store, owner: str, tell: Callable[[PlannedTrial, TrialOutcome], None]) -> None:
        """`tell` is told of each that ended elsewhere."""
        self._store, self._owner, self._tell = store, owner, tell
        self._trials: dict[str, PlannedTrial] = {}
        self._next_poll_s = 0.0

    def __len__(self) -> int:
        return len(self._trials)

    @property
    def ids(self) -> Set[str]:
        """Of the trials that are waited for."""
        return self._trials.keys()

    def add(self, trials: Sequence[PlannedTrial]) -> None:
        """Wait for these, which could not be claimed; of those that ended meanwhile it is told."""
        self._trials |= {trial.trial_id: trial for trial in trials}
        self._drop_ended()

    def forget(self, trial_ids: Collection[str]) -> list[PlannedTrial]:
        """Wait for these no more; returns those that were waited for."""
        return [self._trials.pop(trial_id) for trial_id in self._trials.keys() & set(trial_ids)]

    def taken_over(self) -> list[PlannedTrial]:
        """Those whose driver died or gave them back, which are claimed now; asks the store now and then only."""
        if not self._trials or time.monotonic() < self._next_poll_s:
            return []
        self._next_poll_s = time.monotonic() + POLL_S
        expire_dead_owners(self._store)
        self._drop_ended()
        free = self._store.claim(list(self._trials), owner=self._owner, lease_s=LEASE_S)
        return [self._trials.pop(trial_id) for trial_id in free]

    def _drop_ended(self) -> None:
        for trial_id, state in self._store.states(list(self._trials)).items():
            if state not in OPEN:
                cause = None if state == "done" else f"{state} in another driver's run"
                self._tell(self._trials.pop(trial_id), TrialOutcome(trial_id=trial_id, state=state, cause=cause))
