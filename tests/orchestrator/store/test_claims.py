"""Who runs which trial. Any sequence of calls leaves each in the state that a plain dictionary says it should be in."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as check_state_machine

from orchestrator.store.records import LOST
from orchestrator.store.store import Store
from tests.support.store_rows import KEY, RUN, epoch, ids, outcome, plan

TRIALS = 3
subset = st.lists(st.integers(0, TRIALS - 1), unique=True)
one = st.integers(0, TRIALS - 1)
who = st.sampled_from(["a", "b"])


@dataclass
class Expected:
    """What the dictionary knows of a trial."""

    state: str = "planned"
    attempt: int = 0
    owner: str | None = None
    expired: bool = False


class StoreMachine(RuleBasedStateMachine):
    """The store beside a list of `Expected`, driven through the same calls."""

    groups = count()

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        # Trials and owners of its own: all examples share one database.
        self.group = f"example {next(self.groups)}"
        self.trials = plan(TRIALS, group=self.group)
        self.ids = ids(self.trials)
        self.run_id = store.begin_run(RUN)
        store.register(KEY, self.trials)
        self.expected = [Expected() for _ in self.trials]

    def owner(self, name: str) -> str:
        return f"{name} of {self.group}"

    @rule(numbers=subset, name=who, expired=st.booleans())
    def claim(self, numbers: list[int], name: str, expired: bool) -> None:
        free = [
            number
            for number in numbers
            if (trial := self.expected[number]).state == "planned"
            or (trial.state == "running" and (trial.expired or trial.owner == name))
        ]
        claimed = self.store.claim(
            [self.ids[number] for number in numbers], owner=self.owner(name), lease_s=-1 if expired else 600
        )
        assert claimed == [self.ids[number] for number in free]
        for number in free:
            self.expected[number] = Expected("running", self.expected[number].attempt + 1, name, expired)

    @rule(name=who)
    def renew(self, name: str) -> None:
        held = [trial for trial in self.expected if trial.owner == name]
        assert self.store.renew(self.owner(name), 600) == len(held)
        for trial in self.expected:
            trial.expired = trial.expired and trial.owner != name

    @rule(numbers=subset, name=who)
    def release(self, numbers: list[int], name: str) -> None:
        held = [number for number in numbers if self.expected[number].owner == name]
        assert self.store.release([self.ids[number] for number in numbers], owner=self.owner(name)) == len(held)
        self._idle(held)

    @rule(name=who)
    def expire(self, name: str) -> None:
        held = [number for number in range(TRIALS) if self.expected[number].owner == name]
        assert self.store.expire(self.owner(name)) == len(held)
        self._idle(held)

    @rule(number=one, state=st.sampled_from(["done", "diverged", "failed"]))
    def record(self, number: int, state: str) -> None:
        recorded = outcome(self.ids[number], state=state)  # type: ignore[arg-type]
        was_done = self.expected[number].state == "done"
        assert self.store.record(recorded, run_id=self.run_id, spectrum=None) is not was_done
        self._end(number, state)

    @rule(numbers=subset)
    def reset(self, numbers: list[int]) -> None:
        changed = [number for number in numbers if self.expected[number].state in LOST]
        assert self.store.reset([self.ids[number] for number in numbers]) == [self.ids[number] for number in changed]
        self._idle(changed)

    @rule()
    def register(self) -> None:
        self.store.register(KEY, self.trials)

    @invariant()
    def agrees(self) -> None:
        rows = self.store.trials(KEY)
        owners = [None if trial.owner is None else self.owner(trial.owner) for trial in self.expected]
        assert [(row.state, row.attempt, row.owner) for row in rows] == [
            (trial.state, trial.attempt, owner) for trial, owner in zip(self.expected, owners, strict=True)
        ]
        stored = {owner for owner in self.store.owners() if owner.endswith(self.group)}
        assert stored == {owner for owner in owners if owner is not None}

    def teardown(self) -> None:
        self.expire("a")
        self.expire("b")

    def _idle(self, numbers: list[int]) -> None:
        for number in numbers:
            self.expected[number] = Expected("planned", self.expected[number].attempt)

    def _end(self, number: int, state: str) -> None:
        if self.expected[number].state != "done":
            self.expected[number] = Expected(state, self.expected[number].attempt)


def test_every_sequence_of_calls_leads_to_the_states_it_should(store: Store) -> None:
    check_state_machine(
        lambda: StoreMachine(store),  # type: ignore[arg-type]  # Hypothesis calls it, whatever its annotation says
        settings=settings(
            max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )


@pytest.fixture
def trial_ids(store: Store) -> list[str]:
    """Four planned trials."""
    trials = plan(4)
    store.register(KEY, trials)
    return ids(trials)


def test_claimed_trials_come_in_the_given_order_with_the_lease(store: Store, trial_ids: list[str]) -> None:
    some = [trial_ids[2], trial_ids[0]]
    assert store.claim([trial_ids[2], "f" * 64, trial_ids[0]], owner="a", lease_s=600) == some
    until = store.trials(KEY)[0].lease_until
    assert until is not None
    assert abs(until - datetime.now(UTC) - timedelta(seconds=600)) < timedelta(seconds=10)


def test_reset_plans_failed_and_diverged_trials_again(store: Store, trial_ids: list[str]) -> None:
    run_id = store.begin_run(RUN)
    store.record(outcome(trial_ids[0]), run_id=run_id, spectrum=None)
    store.record(outcome(trial_ids[1], state="diverged"), run_id=run_id, spectrum=np.ones(3))
    store.fail(trial_ids[2], cause="out of memory", run_id=run_id)
    assert store.reset(trial_ids[::-1], states=["failed"]) == [trial_ids[2]]
    assert store.reset(trial_ids[::-1]) == [trial_ids[1]]
    rows = [(row.state, row.cause) for row in store.trials(KEY)]
    assert rows == [("done", None), *[("planned", None)] * 3]
    assert store.results(KEY)[1]["metrics"] == {}
    assert store.spectra(KEY) == {}
    assert trial_ids[1] not in store.environments(KEY)
    assert store.epochs(trial_ids[1]) == [epoch(1), epoch(2), epoch(3)], "kept until the next attempt replaces them"


@pytest.mark.parametrize("state", ["done", "running"])
def test_reset_refuses_to_touch_done_and_running_trials(store: Store, trial_ids: list[str], state: str) -> None:
    with pytest.raises(ValueError, match=state):
        store.reset(trial_ids, states=[state])  # type: ignore[list-item]
