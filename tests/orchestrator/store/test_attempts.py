from __future__ import annotations

import pytest

from orchestrator.store import Store
from orchestrator.store.claims import STOPPED, TAKEN_OVER, WORKER_ENDED
from tests.support.store_rows import KEY, RUN, SPECTRUM, fail, ids, outcome, plan

TRIALS = plan(2)
FIRST, SECOND = ids(TRIALS)


@pytest.fixture
def run_id(store: Store) -> int:
    store.register(KEY, TRIALS)
    return store.begin_run(RUN)


def begin(
    store: Store, *trial_ids: str, owner: str = "a", host: str = "node", lease_s: float = 60.0
) -> None:
    attempts = store.claim(trial_ids, owner=owner, lease_s=lease_s)
    store.record_starts(dict.fromkeys(attempts, host), attempts=attempts)


def attempts_of(store: Store, trial_id: str) -> list[tuple[int, str, bool, str | None]]:
    attempts = store.attempts(trial_id)
    return [
        (attempt.number, attempt.host, attempt.ended_at is not None, attempt.cause)
        for attempt in attempts
    ]


def test_attempts_have_host_and_end(store: Store, run_id: int) -> None:
    assert store.attempts(FIRST) == []
    begin(store, FIRST, host="node 1, GPU 3")
    assert attempts_of(store, FIRST) == [(1, "node 1, GPU 3", False, None)]
    store.end_attempt(FIRST, claim=1, cause="its process died")
    begin(store, FIRST, host="node 2")
    store.release("a", [FIRST])
    begin(store, FIRST, owner="b", host="node 3", lease_s=-1.0)
    begin(store, FIRST, owner="c", host="node 4")
    fail(store, FIRST, cause="the loss is no number", run_id=run_id, attempt=4)
    store.reset([FIRST])
    begin(store, FIRST, host="node 5")
    store.record(outcome(FIRST), run_id=run_id, spectrum=SPECTRUM, attempt=5)
    assert attempts_of(store, FIRST) == [
        (1, "node 1, GPU 3", True, "its process died"),
        (2, "node 2", True, STOPPED),
        (3, "node 3", True, TAKEN_OVER),
        (4, "node 4", True, "the loss is no number"),
        (5, "node 5", True, None),
    ]
    attempts = store.attempts(FIRST)
    moments = [
        moment
        for row in attempts
        for moment in (row.started_at, row.ended_at)
        if moment is not None
    ]
    assert len(moments) == 10 and moments == sorted(moments)
    assert store.attempts(SECOND) == []


@pytest.mark.usefixtures("run_id")
def test_late_messages_change_nothing(store: Store) -> None:
    begin(store, FIRST, SECOND)
    store.release("a", [FIRST])
    over = {FIRST: 1, SECOND: 1}
    store.claim([FIRST], owner="b", lease_s=60)
    store.record_starts({FIRST: "late", SECOND: "node again"}, attempts=over)
    store.end_attempt(FIRST, claim=1, cause="late")
    assert attempts_of(store, FIRST) == [(1, "node", True, STOPPED)]
    went_on = [(1, "node", True, WORKER_ENDED), (2, "node again", False, None)]
    assert attempts_of(store, SECOND) == went_on
    store.end_attempt(SECOND, claim=2, cause="of another claim")
    assert attempts_of(store, SECOND) == went_on
