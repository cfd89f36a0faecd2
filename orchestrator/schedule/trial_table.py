"""The trials of a sweep, each in exactly one state, and the permitted changes of state.

The store records which driver owns a trial. Several drivers can share a study."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum, auto

from orchestrator.store import LEASE_S, PlannedTrial, Store
from trainables.trial_folder import TrialOutcome


class State(Enum):
    """State of a trial, finally ENDED."""

    WAITING = auto()
    """Queued, not claimed."""
    CLAIMED = auto()
    """Claimed for an attempt that no worker has begun; about to be handed out, or queued again."""
    RETRIED = auto()
    """Queued and still claimed after its worker died; claimed again for the next attempt."""
    HANDED_OUT = auto()
    """In a pack that is with a worker or on its way to one."""
    RUNNING = auto()
    ELSEWHERE = auto()
    ENDED = auto()
    """Recorded in the store, or released for a later run."""


OURS = (State.CLAIMED, State.RETRIED, State.HANDED_OUT, State.RUNNING)
NEXT: dict[State, set[State]] = {
    State.WAITING: {State.CLAIMED, State.ELSEWHERE, State.ENDED},
    State.CLAIMED: {State.HANDED_OUT, State.ENDED},
    State.RETRIED: {State.CLAIMED, State.ELSEWHERE, State.ENDED},
    State.HANDED_OUT: {State.RUNNING, State.CLAIMED, State.RETRIED, State.ELSEWHERE, State.ENDED},
    State.RUNNING: {State.CLAIMED, State.RETRIED, State.ELSEWHERE, State.ENDED},
    State.ELSEWHERE: {State.CLAIMED, State.ENDED},
    # A search may want a trial in full that it stopped early.
    State.ENDED: {State.WAITING},
}


class TrialTable:
    """The state of every trial of one driver."""

    def __init__(self, store: Store, owner: str, unclaimed: Collection[str] = ()) -> None:
        """`owner` is the driver's name in the store; `unclaimed` trials need no claim."""
        self._store, self._owner, self._unclaimed = store, owner, unclaimed
        self._states: dict[str, State] = {}
        self._trials: dict[State, dict[str, PlannedTrial]] = {state: {} for state in State}
        self.attempts: dict[str, int] = {}
        """Attempt number of our latest claim, by trial id. The store uses it as our claim token."""

    def trials(self, *states: State) -> dict[str, PlannedTrial]:
        """Return the trials in any of these states, by id."""
        return {
            trial_id: trial for state in states for trial_id, trial in self._trials[state].items()
        }

    @property
    def claimed(self) -> list[PlannedTrial]:
        """Trials that this driver holds in the store: claimed, not ended, not released."""
        return [
            trial
            for trial_id, trial in self.trials(*OURS).items()
            if trial_id not in self._unclaimed
        ]

    def move(self, trials: Iterable[PlannedTrial], state: State) -> None:
        """Move trials to a state. A new trial must begin as WAITING."""
        for trial in trials:
            before = self._states.get(trial.trial_id)
            assert state in ({State.WAITING} if before is None else NEXT[before]), (
                f"{trial.name} goes from {before} to {state}"
            )
            if before is not None:
                del self._trials[before][trial.trial_id]
            self._states[trial.trial_id] = state
            self._trials[state][trial.trial_id] = trial

    def claim(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Claim unclaimed trials; return those that are ours now. The others move to ELSEWHERE."""
        new = [trial for trial in trials if self._states[trial.trial_id] is not State.CLAIMED]
        ids = [trial.trial_id for trial in new if trial.trial_id not in self._unclaimed]
        claimed = self._store.claim(ids, owner=self._owner, lease_s=LEASE_S) if ids else {}
        self.attempts |= claimed
        lost = set(ids).difference(claimed)
        # Immediately: if anything fails from here on, these are known as ours and are released.
        self.move([trial for trial in new if trial.trial_id not in lost], State.CLAIMED)
        elsewhere = self._trials[State.ELSEWHERE].keys()
        self.move([trial for trial in new if trial.trial_id in lost - elsewhere], State.ELSEWHERE)
        return [trial for trial in trials if trial.trial_id not in lost]

    def release(self, trials: Iterable[PlannedTrial]) -> None:
        """Release trials unchanged."""
        trials, ours = list(trials), {trial.trial_id for trial in self.claimed}
        ids = [trial.trial_id for trial in trials if trial.trial_id in ours]
        if ids:
            self._store.release(self._owner, ids)
        self.move(trials, State.ENDED)

    def ended_elsewhere(self) -> list[TrialOutcome]:
        """Return outcomes of ELSEWHERE trials that another driver has ended."""
        elsewhere = list(self._trials[State.ELSEWHERE])
        states = self._store.states(elsewhere) if elsewhere else {}
        return [
            TrialOutcome(
                trial_id=trial_id,
                state=state,
                cause=None if state == "done" else f"{state} in another driver's run",
            )
            for trial_id, state in states.items()
            if state != "planned" and state != "running"
        ]
