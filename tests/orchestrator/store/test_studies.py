from __future__ import annotations

import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.store import STATES, Position, Store
from orchestrator.store.database import IDS_A_STATEMENT
from tests.support.store_rows import KEY, RUN, fail, ids, outcome, plan, plan_of


def test_trials_keep_plan_order(store: Store) -> None:
    trials = plan(20)[::-1]
    trials[3] = replace(trials[3], position=Position(side="a", stage="stage2", number=7))
    store.register(KEY, trials)
    rows = store.trials(KEY)
    assert [plan_of(row) for row in rows] == trials
    assert {(row.state, row.attempt, row.owner, row.lease_until, row.cause) for row in rows} == {
        ("planned", 0, None, None, None)
    }


def test_registering_again_replaces_membership(store: Store) -> None:
    first, second, third = plan(3)
    store.register(KEY, [first, second])
    store.register(KEY, [replace(first, position=Position(side="a", stage="final")), second])
    assert store.trials(KEY)[0].position == Position(side="a", stage="final")
    renamed = replace(third, name="another name")
    store.register(KEY, [renamed, first])
    assert [(row.trial_id, row.name) for row in store.trials(KEY)] == [
        (third.trial_id, "another name"),
        (first.trial_id, first.name),
    ]
    assert store.states([second.trial_id]) == {second.trial_id: "planned"}
    store.register(KEY, [])
    (summary,) = store.studies()
    assert summary.counts == dict.fromkeys(STATES, 0), "a study may have no trials"


def test_stale_membership_changes_nothing(store: Store) -> None:
    first, second, third = plan(3)
    assert store.register(KEY, [first], instead_of=[])
    assert store.register(KEY, [first, second], instead_of=[first.trial_id])
    before = store.studies()
    for stale in ([], [first.trial_id], [second.trial_id, first.trial_id]):
        assert not store.register(KEY, [first, third], instead_of=stale)
    assert [row.trial_id for row in store.trials(KEY)] == [first.trial_id, second.trial_id]
    assert store.states([third.trial_id]) == {}
    assert store.studies() == before
    assert store.register(KEY, [third])


def test_variants_share_trials(store: Store) -> None:
    trials = plan(3)
    variants = [
        KEY,
        replace(KEY, scale="paper"),
        replace(KEY, corpus="ptb"),
        replace(KEY, study="seeds"),
        replace(KEY, overrides='{"settings":{"training.epochs":[5]}}'),
    ]
    for variant in variants:
        store.register(variant, trials)
    store.record(outcome(trials[1].trial_id), run_id=store.begin_run(RUN))
    fail(store, trials[2].trial_id, cause="out of memory", run_id=store.begin_run(RUN))
    summaries = store.studies()
    assert [summary.key for summary in summaries] == variants
    counts = {state: int(state in ("planned", "done", "failed")) for state in STATES}
    assert all(summary.counts == counts for summary in summaries)
    before = datetime.now(UTC)
    store.register(KEY, trials)
    last = store.studies()[-1]
    assert last.key == KEY, "planned last"
    # The server and this process share a clock.
    assert before - timedelta(seconds=1) <= last.planned_at <= datetime.now(UTC)


def test_many_trials_need_many_statements(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    assert IDS_A_STATEMENT < 32_766, "what SQLite takes"
    monkeypatch.setattr("orchestrator.store.database.IDS_A_STATEMENT", 3)
    trials = ids(plan(7))
    store.register(KEY, plan(7))
    assert store.states(trials) == dict.fromkeys(trials, "planned")
    assert store.claim(trials, owner="a driver", lease_s=60) == dict.fromkeys(trials, 1)
    assert store.release("a driver", trials) == len(trials)
    for trial_id in trials:
        fail(store, trial_id, cause="a cause", run_id=store.begin_run(RUN))
    assert store.reset(trials) == trials


def test_request_reaches_current_runs(store: Store) -> None:
    trials = plan(3)
    store.register(KEY, trials)
    variant = replace(KEY, corpus="another")
    store.register(variant, trials)
    first = store.begin_run(RUN)
    assert not store.requests(KEY, first).stop_study
    time.sleep(0.002)
    store.ask_to_stop(KEY)
    store.ask_to_stop(ids(trials)[1])
    time.sleep(0.002)
    second = store.begin_run(RUN)
    request, other, later = (
        store.requests(KEY, first),
        store.requests(variant, first),
        store.requests(KEY, second),
    )
    assert (request.stop_study, other.stop_study, later.stop_study) == (True, False, False)
    assert request.stop_trials == other.stop_trials == {ids(trials)[1]}
    assert later.stop_trials == frozenset()
