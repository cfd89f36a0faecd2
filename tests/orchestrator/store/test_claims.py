"""Who runs which trial: `claim`, `renew`, `release`, `expire`, `owners`, `reset`."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from orchestrator.store.interface import Store
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
    wanted = [trial_ids[2], trial_ids[0]]
    assert store.claim(wanted, owner="a", lease_s=600) == wanted
    rows = store.trials(KEY)
    assert states(store) == ["running", "planned", "running", "planned"]
    assert [row.owner for row in rows] == ["a", None, "a", None]
    assert [row.attempt for row in rows] == [1, 0, 1, 0]
    assert rows[0].lease_until is not None
    assert abs(rows[0].lease_until - datetime.now(UTC) - timedelta(seconds=600)) < timedelta(seconds=10)
    assert store.owners() == ["a"]


def test_another_owner_gets_only_what_is_left(store: Store, trial_ids: list[str]) -> None:
    store.claim(trial_ids[:2], owner="a", lease_s=600)
    assert store.claim(trial_ids, owner="b", lease_s=600) == trial_ids[2:]
    assert store.claim(trial_ids, owner="c", lease_s=600) == []
    assert store.owners() == ["a", "b"]


def test_an_owner_claims_its_own_again_as_one_more_attempt(store: Store, trial_ids: list[str]) -> None:
    for _ in range(3):
        assert store.claim(trial_ids[:1], owner="a", lease_s=600) == trial_ids[:1]
    assert store.trials(KEY)[0].attempt == 3


def test_a_lease_that_ran_out_is_free_and_a_renewed_one_is_not(store: Store, trial_ids: list[str]) -> None:
    store.claim(trial_ids[:2], owner="a", lease_s=0)
    store.claim(trial_ids[2:], owner="b", lease_s=0)
    assert store.renew("a", 600) == 2
    time.sleep(0.01)
    assert store.claim(trial_ids, owner="c", lease_s=600) == trial_ids[2:]
    assert [row.owner for row in store.trials(KEY)] == ["a", "a", "c", "c"]
    assert [row.attempt for row in store.trials(KEY)] == [1, 1, 2, 2]


def test_claiming_unknown_trials_gets_none(store: Store, trial_ids: list[str]) -> None:
    assert store.claim(["f" * 64, trial_ids[0]], owner="a", lease_s=60) == trial_ids[:1]


@pytest.mark.parametrize("ended", ["done", "diverged", "failed"])
def test_an_ended_trial_cannot_be_claimed(store: Store, trial_ids: list[str], ended: str) -> None:
    store.claim(trial_ids[:1], owner="a", lease_s=600)
    store.record(outcome(trial_ids[0], state=ended), run_id=store.begin_run(RUN), spectrum=None)  # type: ignore[arg-type]
    assert store.claim(trial_ids[:1], owner="a", lease_s=600) == []
    assert store.owners() == []


def test_released_trials_are_planned_again(store: Store, trial_ids: list[str]) -> None:
    store.claim(trial_ids[:2], owner="a", lease_s=600)
    store.claim(trial_ids[2:3], owner="b", lease_s=600)
    assert store.release(trial_ids, owner="a") == 2
    assert states(store) == ["planned", "planned", "running", "planned"]
    assert store.trials(KEY)[0].attempt == 1, "an interrupted attempt was an attempt"
    assert store.owners() == ["b"]


def test_a_dead_owner_loses_all_it_ran(store: Store, trial_ids: list[str]) -> None:
    store.claim(trial_ids[:3], owner="a", lease_s=600)
    store.record(outcome(trial_ids[0]), run_id=store.begin_run(RUN), spectrum=None)
    assert store.expire("a") == 2
    assert states(store) == ["done", "planned", "planned", "planned"]
    assert store.expire("a") == 0
    assert store.owners() == []


def test_reset_plans_failed_and_diverged_trials_again(store: Store, trial_ids: list[str]) -> None:
    run_id = store.begin_run(RUN)
    store.record(outcome(trial_ids[0]), run_id=run_id, spectrum=None)
    store.record(outcome(trial_ids[1], state="diverged"), run_id=run_id, spectrum=np.ones(3))
    store.fail(trial_ids[2], cause="out of memory", run_id=run_id)
    assert store.reset(trial_ids[::-1]) == [trial_ids[2], trial_ids[1]]
    assert states(store) == ["done", "planned", "planned", "planned"]
    assert [row.cause for row in store.trials(KEY)] == [None] * 4
    assert store.results(KEY)[1]["metrics"] == {}
    assert store.spectrum(trial_ids[1]) is None
    assert store.environment(trial_ids[1]) == {}
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
