from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from hypothesis.stateful import run_state_machine_as_test as check_state_machine

from orchestrator.store import LOST, Store
from tests.support.store_rows import KEY, RUN, epoch, fail, ids, outcome, plan
from trainables.trial_folder.outcome import FinalState

TRIALS = 3
subset = st.lists(st.integers(0, TRIALS - 1), unique=True)
one = st.integers(0, TRIALS - 1)
owner_names = st.sampled_from(["a", "b"])


@dataclass
class Expected:
    state: str = "planned"
    attempt: int = 0
    owner: str | None = None
    expired: bool = False


class StoreMachine(RuleBasedStateMachine):
    groups = count()

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store = store
        # All examples share one database, so each has its own trials and owners.
        self.group = f"example {next(self.groups)}"
        self.trials = plan(TRIALS, group=self.group)
        self.run_id = store.begin_run(RUN)
        store.register(KEY, self.trials)
        self.expected = {trial_id: Expected() for trial_id in ids(self.trials)}

    def numbered(self, numbers: Sequence[int]) -> list[str]:
        return [ids(self.trials)[number] for number in numbers]

    def idle(self, trial_ids: Sequence[str], state: str = "planned") -> None:
        for trial_id in trial_ids:
            self.expected[trial_id] = Expected(state, self.expected[trial_id].attempt)

    @rule(numbers=subset, name=owner_names, expired=st.booleans())
    def claim(self, numbers: list[int], name: str, expired: bool) -> None:
        numbered_ids, owner = self.numbered(numbers), f"{name} of {self.group}"
        free = [
            trial_id
            for trial_id in numbered_ids
            if (trial := self.expected[trial_id]).state == "planned"
            or (trial.state == "running" and (trial.expired or trial.owner == owner))
        ]
        claimed = self.store.claim(numbered_ids, owner=owner, lease_s=-1 if expired else 600)
        for trial_id in free:
            self.expected[trial_id] = Expected(
                "running", self.expected[trial_id].attempt + 1, owner, expired
            )
        assert list(claimed.items()) == [
            (trial_id, self.expected[trial_id].attempt) for trial_id in free
        ]

    @rule(name=owner_names)
    def renew(self, name: str) -> None:
        owner = f"{name} of {self.group}"
        held = [trial for trial in self.expected.values() if trial.owner == owner]
        assert self.store.renew(owner, 600) == len(held)
        for trial in held:
            trial.expired = False

    @rule(numbers=st.none() | subset, name=owner_names)
    def release(self, numbers: list[int] | None, name: str) -> None:
        owner = f"{name} of {self.group}"
        among = self.numbered(range(TRIALS) if numbers is None else numbers)
        held = [trial_id for trial_id in among if self.expected[trial_id].owner == owner]
        assert self.store.release(owner, None if numbers is None else among) == len(held)
        self.idle(held)
        owners = {owner for owner in self.store.owners() if owner.endswith(self.group)}
        assert owners == {
            trial.owner for trial in self.expected.values() if trial.owner is not None
        }

    @rule(
        number=one,
        state=st.sampled_from(["done", "diverged", "failed"]),
        behind=st.none() | st.integers(0, 2),
    )
    def record(self, number: int, state: FinalState, behind: int | None) -> None:
        (trial_id,) = self.numbered([number])
        trial = self.expected[trial_id]
        if trial.state == "done" or state == "done":
            takes = trial.state != "done"
        elif behind is None:
            takes = trial.state == "planned" or (trial.state == "running" and trial.expired)
        else:
            takes = trial.state == "running" and behind == 0
        attempt = None if behind is None else trial.attempt - behind
        end = outcome(trial_id, state=state)
        assert self.store.record(end, run_id=self.run_id, attempt=attempt) is takes
        if takes:
            self.idle([trial_id], state)

    @rule(numbers=subset)
    def reset(self, numbers: list[int]) -> None:
        lost = [
            trial_id for trial_id in self.numbered(numbers) if self.expected[trial_id].state in LOST
        ]
        assert self.store.reset(self.numbered(numbers)) == lost
        self.idle(lost)

    @rule()
    def register(self) -> None:
        self.store.register(KEY, self.trials)

    @invariant()
    def agrees(self) -> None:
        stored = [(row.state, row.attempt, row.owner) for row in self.store.trials(KEY)]
        assert stored == [
            (trial.state, trial.attempt, trial.owner) for trial in self.expected.values()
        ]


def test_call_sequences_keep_states_right(store: Store) -> None:
    check_state_machine(
        lambda: StoreMachine(store),  # type: ignore[arg-type]  # Hypothesis calls it despite its annotation
        settings=settings(
            max_examples=25,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.fixture
def trial_ids(store: Store) -> list[str]:
    trials = plan(4)
    store.register(KEY, trials)
    return ids(trials)


def test_reset_replans_failed_trials(store: Store, trial_ids: list[str]) -> None:
    done, diverged, failed, _ = trial_ids
    run_id = store.begin_run(RUN)
    store.record(outcome(done), run_id=run_id)
    store.record(outcome(diverged, state="diverged"), run_id=run_id, spectrum=np.ones(3))
    fail(store, failed, cause="out of memory", run_id=run_id)
    assert store.reset(trial_ids[::-1], states=["failed"]) == [failed]
    assert store.reset(trial_ids[::-1]) == [diverged]
    first, *reset = store.results(KEY)
    assert first["state"] == "done" and store.spectra(KEY) == {}
    assert [(row["state"], row["cause"], row["metrics"], row["environment"]) for row in reset] == [
        ("planned", None, {}, {})
    ] * 3
    epochs = store.epochs(diverged)
    assert epochs == [epoch(1), epoch(2), epoch(3)], (
        "epochs stay until the next attempt replaces them"
    )


@pytest.mark.parametrize("state", ["done", "running"])
def test_reset_refuses_done_and_running(store: Store, trial_ids: list[str], state: str) -> None:
    with pytest.raises(ValueError, match=state):
        store.reset(trial_ids, states=[state])  # type: ignore[list-item]
