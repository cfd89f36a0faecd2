from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from orchestrator.store import Store
from tests.support.store_rows import KEY, RUN, SPECTRUM, epoch, ids, outcome, plan
from trainables.trial_folder import EpochMetrics, TrialOutcome

WRONG = [epoch(1, valid_loss=9.0), epoch(4, valid_loss=9.0)]


def ends_of_the_first_attempt(trial_id: str) -> list[TrialOutcome]:
    return [
        TrialOutcome(trial_id=trial_id, state="failed", cause="its worker died"),
        outcome(trial_id, state="diverged", epochs=0).model_copy(update={"epochs": tuple(WRONG)}),
        outcome(trial_id, state="pruned", epochs=1),
    ]


class Deliveries:
    def __init__(self, store: Store, trial_id: str, draw: random.Random) -> None:
        self.store, self.trial_id, self.draw = store, trial_id, draw
        self.run_id, self.right = store.begin_run(RUN), outcome(trial_id)
        assert store.claim([trial_id], owner="first", lease_s=-1) == {trial_id: 1}
        self.second: int | None = None
        self.takings = 0

    def all(self) -> list[Callable[[], None]]:
        early: list[Callable[[], None]] = [
            partial(self.end, end) for end in ends_of_the_first_attempt(self.trial_id)
        ]
        early += [lambda: self.epochs(WRONG, 1), lambda: self.done(1), lambda: self.done(None)]
        late: list[Callable[[], None]] = [
            lambda: self.epochs(list(self.right.model_epochs), self.second),
            lambda: self.done(self.second),
        ]
        calls = [*early, *early, *late, *late, lambda: self.epochs([epoch(2)], self.second)]
        self.draw.shuffle(calls)
        calls.insert(self.draw.randrange(len(calls) // 2), self.claim_again)
        return calls

    def claim_again(self) -> None:
        self.second = self.store.claim([self.trial_id], owner="second", lease_s=600).get(
            self.trial_id
        )
        assert self.second in (None, 2)

    def end(self, end: TrialOutcome) -> None:
        taken = self.store.record(end, run_id=self.run_id, spectrum=np.ones(2), attempt=1)
        assert not (taken and self.second), "the expired attempt has ended the trial"

    def done(self, attempt: int | None) -> None:
        self.takings += self.store.record(
            self.right, run_id=self.run_id, spectrum=SPECTRUM, attempt=attempt
        )

    def epochs(self, rows: list[EpochMetrics], attempt: int | None) -> None:
        if attempt is not None:  # a worker always has an attempt number
            before = self.store.epochs(self.trial_id)
            self.store.record_epochs({self.trial_id: rows}, attempts={self.trial_id: attempt})
            assert self.second in (None, attempt) or self.store.epochs(self.trial_id) == before


@pytest.mark.chaos(10, 1000)
def test_any_order_leaves_right_result(store: Store, rounds: int) -> None:
    seed = random.randrange(2**32)
    draw = random.Random(seed)
    trials = plan(rounds)
    store.register(KEY, trials)
    for trial_id in ids(trials):
        deliveries = Deliveries(store, trial_id, draw)
        for deliver in deliveries.all():
            deliver()
            state = store.states([trial_id])[trial_id]
            if deliveries.takings:
                assert state == "done", f"seed {seed}"
            elif deliveries.second:
                assert state == "running", f"seed {seed}"
        assert deliveries.takings == 1, f"seed {seed}"
    right = outcome("")
    metrics = right.measurements["perplexity@1"] | right.measurements["spectrum@1"]
    assert [(row["state"], row["metrics"], row["cause"]) for row in store.results(KEY)] == [
        ("done", metrics, None)
    ] * rounds, f"seed {seed}"
    assert store.epochs_by_trial(KEY) == {key: list(right.epochs) for key in ids(trials)}, (
        f"seed {seed}"
    )
    assert {values.tobytes() for values in store.spectra(KEY).values()} == {SPECTRUM.tobytes()}
