"""The trials of one driver, each in exactly one state, and permitted changes of state."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum, auto

from orchestrator.store import LEASE_S, PlannedTrial, Store
from trainables.trial_folder import TrialOutcome


class State(Enum):
    """State of a trial in one driver."""

    WAITING = auto()
    """Queued and unclaimed."""
    CLAIMED = auto()
    """Claimed, but not handed out to a worker."""
    RETRIED = auto()
    """Claimed and queued again, because its worker died."""
    HANDED_OUT = auto()
    """In a pack that was handed out to a worker, but not started."""
    RUNNING = auto()
    ELSEWHERE = auto()
    ENDED = auto()
    """Recorded in the store, or released for a later run."""


CLAIMED_STATES = (State.CLAIMED, State.RETRIED, State.HANDED_OUT, State.RUNNING)
TRANSITIONS: dict[State, set[State]] = {
    State.WAITING: {State.CLAIMED, State.ELSEWHERE, State.ENDED},
    State.CLAIMED: {State.HANDED_OUT, State.ENDED},
    State.RETRIED: {State.CLAIMED, State.ELSEWHERE, State.ENDED},
    State.HANDED_OUT: {State.RUNNING, State.CLAIMED, State.RETRIED, State.ELSEWHERE, State.ENDED},
    State.RUNNING: {State.CLAIMED, State.RETRIED, State.ELSEWHERE, State.ENDED},
    State.ELSEWHERE: {State.CLAIMED, State.ENDED},
    # A search may later run a trial in full that it stopped early.
    State.ENDED: {State.WAITING},
}


class TrialTable:
    """The state of each trial of one driver."""

    def __init__(self, store: Store, owner: str, exempt_ids: Collection[str]) -> None:
        """`owner` names this driver in the store. Trials in `exempt_ids` need no claim."""
        self._store, self._owner, self._exempt_ids = store, owner, exempt_ids
        self._states: dict[str, State] = {}
        self._trials: dict[State, dict[str, PlannedTrial]] = {state: {} for state in State}
        self.attempts: dict[str, int] = {}
        """Attempt number of this driver's latest claim, by trial id. It identifies the claim in the
        store."""
        self.busy_ids: set[str] = set()
        """Trials that a worker without a driver had when this driver last ran them."""

    def trials(self, *states: State) -> dict[str, PlannedTrial]:
        """Return the trials that are in one of `states`, by id."""
        return {
            trial_id: trial for state in states for trial_id, trial in self._trials[state].items()
        }

    @property
    def claimed_trials(self) -> list[PlannedTrial]:
        """Trials that this driver has claimed."""
        return [
            trial
            for trial_id, trial in self.trials(*CLAIMED_STATES).items()
            if trial_id not in self._exempt_ids
        ]

    def move(self, trials: Iterable[PlannedTrial], state: State) -> None:
        """Move trials to a state. A new trial must begin as WAITING."""
        for trial in trials:
            old_state = self._states.get(trial.trial_id)
            assert state in ({State.WAITING} if old_state is None else TRANSITIONS[old_state]), (
                f"{trial.name} goes from {old_state} to {state}"
            )
            if old_state is not None:
                del self._trials[old_state][trial.trial_id]
            self._states[trial.trial_id] = state
            self._trials[state][trial.trial_id] = trial

    def claim(self, trials: Sequence[PlannedTrial]) -> list[PlannedTrial]:
        """Claim trials; return the claimed ones. Set the other trials to ELSEWHERE."""
        new_trials = [
            trial for trial in trials if self._states[trial.trial_id] is not State.CLAIMED
        ]
        ids = [trial.trial_id for trial in new_trials if trial.trial_id not in self._exempt_ids]
        attempts = self._store.claim(ids, owner=self._owner, lease_s=LEASE_S) if ids else {}
        self.attempts |= attempts
        lost_ids = set(ids).difference(attempts)
        # Move them at once: if anything fails from here on, they are known as ours and released.
        self.move([trial for trial in new_trials if trial.trial_id not in lost_ids], State.CLAIMED)
        elsewhere_ids = self._trials[State.ELSEWHERE].keys()
        self.move(
            [trial for trial in new_trials if trial.trial_id in lost_ids - elsewhere_ids],
            State.ELSEWHERE,
        )
        return [trial for trial in trials if trial.trial_id not in lost_ids]

    def give_way(self, trial: PlannedTrial) -> None:
        """Release a trial that a worker without a driver has, and set it to ELSEWHERE."""
        self._store.release(self._owner, [trial.trial_id])
        self.busy_ids.add(trial.trial_id)
        self.move([trial], State.ELSEWHERE)

    def release(self, trials: Iterable[PlannedTrial]) -> None:
        """Release the trials and mark them as ENDED."""
        trials, claimed_ids = list(trials), {trial.trial_id for trial in self.claimed_trials}
        ids = [trial.trial_id for trial in trials if trial.trial_id in claimed_ids]
        if ids:
            self._store.release(self._owner, ids)
        self.move(trials, State.ENDED)

    def elsewhere_outcomes(self) -> list[TrialOutcome]:
        """Return outcomes of trials that other drivers ended."""
        elsewhere_ids = list(self._trials[State.ELSEWHERE])
        states = self._store.states(elsewhere_ids) if elsewhere_ids else {}
        return [
            TrialOutcome(
                trial_id=trial_id,
                state=state,
                cause=None if state == "done" else f"{state} in another driver's run",
            )
            for trial_id, state in states.items()
            if state != "planned" and state != "running"
        ]
