"""The trials of a sweep, each in exactly one state; every change of a state is one of those that
are listed here.

Whose a trial is says the store: drivers that are given the same study share it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum, auto

from orchestrator.store import LEASE_S, PlannedTrial, Store
from trainables.trial_folder import TrialOutcome


class State(Enum):
    """Where a trial is. In the end it is ENDED."""

    WAITING = auto()
    """In the queue, and not ours yet."""
    CLAIMED = auto()
    """Ours for an attempt that no worker has begun: about to be handed out, or back in the
    queue."""
    RETRIED = auto()
    """In the queue and claimed: its worker died at it, and it is claimed again for another
    attempt."""
    HANDED_OUT = auto()
    """In a pack that is with a worker, or on its way to one."""
    RUNNING = auto()
    """Its worker is at it."""
    ELSEWHERE = auto()
    """Another driver runs it."""
    ENDED = auto()
    """Its outcome is in the store, or it was given back to it as it is, for a later run."""


OURS = (State.CLAIMED, State.RETRIED, State.HANDED_OUT, State.RUNNING)
NEXT: dict[State, set[State]] = {
    State.WAITING: {State.CLAIMED, State.ELSEWHERE, State.ENDED},
    State.CLAIMED: {State.HANDED_OUT, State.ENDED},
    State.RETRIED: {State.CLAIMED, State.ELSEWHERE, State.ENDED},
    State.HANDED_OUT: {State.RUNNING, State.CLAIMED, State.RETRIED, State.ELSEWHERE, State.ENDED},
    State.RUNNING: {State.CLAIMED, State.RETRIED, State.ELSEWHERE, State.ENDED},
    State.ELSEWHERE: {State.CLAIMED, State.ENDED},
    # A search may want a trial whole that it has stopped early.
    State.ENDED: {State.WAITING},
}
"""Which states may follow one."""


class TrialTable:
    """The table from trial to state, of one driver."""

    def __init__(self, store: Store, owner: str, unclaimed: Collection[str] = ()) -> None:
        """`owner` is the driver's name in the store; trials that are `unclaimed` are anybody's."""
        self._store, self._owner, self._unclaimed = store, owner, unclaimed
        self._states: dict[str, State] = {}
        self._trials: dict[State, dict[str, PlannedTrial]] = {state: {} for state in State}
        self.attempts: dict[str, int] = {}
        """Of each trial that was claimed, the attempt for which it was, last: what the store knows
        this driver by."""

    def trials(self, *states: State) -> dict[str, PlannedTrial]:
        """Those in one of these states, by id."""
        return {
            trial_id: trial for state in states for trial_id, trial in self._trials[state].items()
        }

    @property
    def claimed(self) -> list[PlannedTrial]:
        """The trials that are ours by the store: claimed, and neither ended nor given back."""
        return [
            trial
            for trial_id, trial in self.trials(*OURS).items()
            if trial_id not in self._unclaimed
        ]

    def move(self, trials: Iterable[PlannedTrial], state: State) -> None:
        """Put trials into a state; new ones begin by waiting."""
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
        """Claim trials for an attempt, unless they are; returns those that are ours now, the others
        are elsewhere."""
        new = [trial for trial in trials if self._states[trial.trial_id] is not State.CLAIMED]
        ids = [trial.trial_id for trial in new if trial.trial_id not in self._unclaimed]
        claimed = self._store.claim(ids, owner=self._owner, lease_s=LEASE_S) if ids else {}
        self.attempts |= claimed
        lost = set(ids).difference(claimed)
        # At once: whatever fails from here on, these are known to be ours and are given back.
        self.move([trial for trial in new if trial.trial_id not in lost], State.CLAIMED)
        elsewhere = self._trials[State.ELSEWHERE].keys()
        self.move([trial for trial in new if trial.trial_id in lost - elsewhere], State.ELSEWHERE)
        return [trial for trial in trials if trial.trial_id not in lost]

    def release(self, trials: Iterable[PlannedTrial]) -> None:
        """Give trials back, as they are."""
        trials, ours = list(trials), {trial.trial_id for trial in self.claimed}
        ids = [trial.trial_id for trial in trials if trial.trial_id in ours]
        if ids:
            self._store.release(self._owner, ids)
        self.move(trials, State.ENDED)

    def ended_elsewhere(self) -> list[TrialOutcome]:
        """How those ended that another driver has brought to their end."""
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
