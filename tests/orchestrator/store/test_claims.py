"""Who runs which trial: `claim`, `owners`, `reset`. Sequences of calls, with `renew`, `release` and `expire`, are the
state machine's."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from orchestrator.store.store import Store
from tests.support.store_rows import KEY, RUN, epoch, ids, outcome, plan


@pytest.fixture
def trial_ids(store: Store) -> list[str]:
    """Four planned trials."""
    trials = plan(4)
    store.register(KEY, trials)
    return ids(trials)


def states(store: Store) -> list[str]:
    """The states in plan order."""
    return [row.state for row in store.trials(KEY)]


def test_claimed_trials_run_under_their_owner_for_the_lease(store: Store, trial_ids: list[str]) -> None:
    some = [trial_ids[2], trial_ids[0]]
    assert store.claim([trial_ids[2], "f" * 64, trial_ids[0]], owner="a", lease_s=600) == some
    rows = store.trials(KEY)
    assert states(store) == ["running", "planned", "running", "planned"]
    assert [row.owner for row in rows] == ["a", None, "a", None]
    assert [row.attempt for row in rows] == [1, 0, 1, 0]
    assert rows[0].lease_until is not None
    assert abs(rows[0].lease_until - datetime.now(UTC) - timedelta(seconds=600)) < timedelta(seconds=10)
    assert store.owners() == ["a"]


def test_reset_plans_failed_and_diverged_trials_again(store: Store, trial_ids: list[str]) -> None:
    run_id = store.begin_run(RUN)
    store.record(outcome(trial_ids[0]), run_id=run_id, spectrum=None)
    store.record(outcome(trial_ids[1], state="diverged"), run_id=run_id, spectrum=np.ones(3))
    store.fail(trial_ids[2], cause="out of memory", run_id=run_id)
    assert store.reset(trial_ids[::-1]) == [trial_ids[2], trial_ids[1]]
    assert states(store) == ["done", "planned", "planned", "planned"]
    assert [row.cause for row in store.trials(KEY)] == [None] * 4
    assert store.results(KEY)[1]["metrics"] == {}
    assert store.spectra(KEY) == {}
    assert trial_ids[1] not in store.environments(KEY)
    assert store.epochs(trial_ids[1]) == [epoch(1), epoch(2), epoch(3)], "kept until the next attempt replaces them"


def test_reset_takes_the_states_it_is_told(store: Store, trial_ids: list[str]) -> None:
    run_id = store.begin_run(RUN)
    store.record(outcome(trial_ids[0], state="diverged"), run_id=run_id, spectrum=None)
    store.fail(trial_ids[1], cause="out of memory", run_id=run_id)
    assert store.reset(trial_ids, states=["failed"]) == [trial_ids[1]]
    assert states(store)[:2] == ["diverged", "planned"]


@pytest.mark.parametrize("state", ["done", "running"])
def test_reset_refuses_to_touch_done_and_running_trials(store: Store, trial_ids: list[str], state: str) -> None:
    with pytest.raises(ValueError, match=state):
        store.reset(trial_ids, states=[state])  # type: ignore[list-item]
