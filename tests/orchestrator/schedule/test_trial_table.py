"""The table from trial to state allows the listed changes and no other."""

from __future__ import annotations

import pytest

from orchestrator.schedule.trial_table import NEXT, State, TrialTable
from orchestrator.store.store import Store
from tests.support.scripted_trials import planned

TRIAL = planned([0])[0]
TO_EVERY_STATE = {
    State.RETRIED: (State.CLAIMED, State.HANDED_OUT, State.RUNNING, State.RETRIED),
    State.RUNNING: (State.CLAIMED, State.HANDED_OUT, State.RUNNING),
    State.RECORDED: (State.CLAIMED, State.HANDED_OUT, State.RUNNING, State.RECORDED),
    State.FAILED: (State.CLAIMED, State.HANDED_OUT, State.RUNNING, State.FAILED),
    State.HANDED_OUT: (State.CLAIMED, State.HANDED_OUT),
    **{state: (state,) for state in (State.CLAIMED, State.ELSEWHERE, State.RELEASED)},
    State.WAITING: (),
}


@pytest.mark.parametrize("before", State)
def test_a_trial_is_in_one_state_and_leaves_it_only_for_those_that_may_follow(before: State, store: Store) -> None:
    for after in State:
        table = TrialTable(store, "me")
        for state in (State.WAITING, *TO_EVERY_STATE[before]):
            table.move([TRIAL], state)
        assert table.trials(before) == table.trials(*State) == {TRIAL.trial_id: TRIAL}
        if after in NEXT[before]:
            table.move([TRIAL], after)
            assert (table.any(before), table.state(TRIAL.trial_id)) == (False, after)
        else:
            with pytest.raises(AssertionError, match="seed=0 goes from"):
                table.move([TRIAL], after)
