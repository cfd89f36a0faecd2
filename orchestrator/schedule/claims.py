"""What one driver claims in the store, and trials of other drivers: waited for, taken over where such a driver died."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from orchestrator.store import LEASE_S, Store, expire_dead_owners
from trainables.trial_folder import TrialOutcome

POLL_S = 2.0
"""How often the store is asked about trials of other drivers."""


class Claims:
    """One driver's claims, under its name."""

    def __init__(self, store: Store, owner: str) -> None:
        self._store, self._owner = store, owner
        self._next_poll_s = 0.0

    def claim(self, trial_ids: Sequence[str]) -> set[str]:
        """Claim these for an attempt; returns those that are ours now."""
        return set(self._store.claim(list(trial_ids), owner=self._owner, lease_s=LEASE_S))

    def release(self, trial_ids: Collection[str]) -> None:
        """Give these back, as they are."""
        if trial_ids:
            self._store.release(list(trial_ids), owner=self._owner)

    def ended(self, trial_ids: Collection[str]) -> list[TrialOutcome]:
        """How those of these ended that another driver has brought to their end."""
        states = self._store.states(list(trial_ids)) if trial_ids else {}
        return [
            TrialOutcome(
                trial_id=trial_id,
                state=state,
                cause=None if state == "done" else f"{state} in another driver's run",
            )
            for trial_id, state in states.items()
            if state != "planned" and state != "running"
        ]

    def poll_due(self) -> bool:
        """Whether to look again at what other drivers run; True once in a while."""
        if time.monotonic() < self._next_poll_s:
            return False
        self._next_poll_s = time.monotonic() + POLL_S
        expire_dead_owners(self._store)
        return True
