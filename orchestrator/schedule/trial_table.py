"""The trials of a sweep, each in exactly one state; every change of a state is one of those that are listed here."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum, auto

from orchestrator.store import PlannedTrial


class State(Enum):
    """Where a trial is. It comes to one of the last three in the end."""

    WAITING = auto()
    """In the queue, and not ours yet."""
    CLAIMED = auto()
    """Ours for an attempt that no worker has begun: about to be handed out, or back in the queue."""
    RETRIED = auto()
    """In the queue and claimed: its worker died at it, and it is claimed again for another attempt."""
    HANDED_OUT = auto()
    """In a pack that is with a worker, or on its way to one."""
    RUNNING = auto()
    """Its worker is at it."""
    ELSEWHERE = auto()
    """Another driver runs it."""
    RECORDED = auto()
    """Its outcome is in the store."""
    FAILED = auto()
    """It has no attempt left."""
    RELEASED = auto()
    """Given back to the store as it is, for a later run."""


OURS = (State.CLAIMED, State.RETRIED, State.HANDED_OUT, State.RUNNING)
_TO_THE_END = {State.RECORDED, State.FAILED, State.RELEASED}
NEXT: dict[State, set[State]] = {
    State.WAITING: {State.CLAIMED, State.ELSEWHERE, State.RELEASED},
    State.CLAIMED: {State.HANDED_OUT, State.RELEASED},
    State.RETRIED: {State.CLAIMED, State.ELSEWHERE, State.RELEASED},
    State.HANDED_OUT: {State.RUNNING, State.CLAIMED, State.RETRIED, *_TO_THE_END},
    State.RUNNING: {State.CLAIMED, State.RETRIED, *_TO_THE_END},
    State.ELSEWHERE: {State.CLAIMED, State.RECORDED, State.RELEASED},
    # A search may want a trial whole that it has stopped early.
    **{state: {State.WAITING} for state in _TO_THE_END},
}
"""Which states may follow one."""


class TrialTable:
    """The table from trial to state."""

    def __init__(self) -> None:
        self._states: dict[str, State] = {}
        self._trials: dict[State, dict[str, PlannedTrial]] = {state: {} for state in State}

    def __contains__(self, trial_id: str) -> bool:
        return trial_id in self._states

    def state(self, trial_id: str) -> State:
        """Of a trial that is in the table."""
        return self._states[trial_id]

    def trials(self, *states: State) -> dict[str, PlannedTrial]:
        """Those in one of these states, by id."""
        return {trial_id: trial for state in states for trial_id, trial in self._trials[state].items()}

    def any(self, state: State) -> bool:
        """Whether a trial is in this state."""
        return bool(self._trials[state])

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
