"""Which trials a study has: `register`, `studies`, `trials`, `states`."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from orchestrator.store.database import IDS_A_STATEMENT
from orchestrator.store.records import STATES, Place
from orchestrator.store.store import Store
from tests.support.store_rows import KEY, RUN, ids, outcome, plan, planned


def test_registered_trials_come_back_in_plan_order(store: Store) -> None:
    trials = plan(20)[::-1]
    trials[3] = replace(trials[3], place=Place(side="a", stage="stage2", number=7))
    store.register(KEY, trials)
    rows = store.trials(KEY)
    assert [row.planned() for row in rows] == trials
    assert {(row.state, row.attempt, row.owner, row.lease_until, row.cause) for row in rows} == {
        ("planned", 0, None, None, None)
    }


def test_registering_again_sets_the_membership_exactly_and_forgets_no_trial(store: Store) -> None:
    first, second, third = plan(3)
    store.register(KEY, [first, second])
    store.register(KEY, [replace(first, place=Place(side="a", stage="final")), second])
    assert store.trials(KEY)[0].place == Place(side="a", stage="final")
    renamed = replace(third, name="another name")
    store.register(KEY, [renamed, first])
    assert [(row.trial_id, row.name) for row in store.trials(KEY)] == [
        (third.trial_id, "another name"),
        (first.trial_id, first.name),
    ]
    assert store.states([second.trial_id]) == {second.trial_id: "planned"}
    store.register(KEY, [])
    (summary,) = store.studies()
    assert summary.counts == dict.fromkeys(STATES, 0), "a study without trials is one"


def test_registering_in_place_of_members_that_are_no_longer_those_changes_nothing(store: Store) -> None:
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


def test_studies_share_trials_and_variants_are_studies_of_their_own(store: Store) -> None:
    trials = plan(3)
    variants = [
        KEY,
        replace(KEY, scale="paper"),
        replace(KEY, corpus="ptb"),
        replace(KEY, study="seeds"),
        replace(KEY, overrides='{"training.epochs":5}'),
    ]
    for variant in variants:
        store.register(variant, trials)
    store.record(outcome(trials[1].trial_id), run_id=store.begin_run(RUN), spectrum=None)
    store.fail(trials[2].trial_id, cause="out of memory", run_id=store.begin_run(RUN))
    summaries = store.studies()
    assert [summary.key for summary in summaries] == variants
    for summary in summaries:
        assert summary.counts == {state: int(state in ("planned", "done", "failed")) for state in STATES}


def test_the_study_planned_last_comes_last(store: Store) -> None:
    other = replace(KEY, study="seeds")
    before = datetime.now(UTC)
    for key in (KEY, other, KEY):
        store.register(key, plan(2))
    summaries = store.studies()
    assert [summary.key for summary in summaries] == [other, KEY]
    # The server's clock and ours are the same machine's.
    assert before - timedelta(seconds=1) <= summaries[0].planned_at <= summaries[1].planned_at <= datetime.now(UTC)


def test_another_config_for_the_same_id_is_refused_and_nothing_is_written(store: Store) -> None:
    stored = planned(1)
    store.register(KEY, [stored])
    forged = replace(stored, config={**stored.config, "seed": 2})
    with pytest.raises(AssertionError, match="another config"):
        store.register(KEY, [planned(2), forged])
    with pytest.raises(AssertionError, match="twice"):
        store.register(KEY, [planned(2), planned(2)])
    assert [row.config for row in store.trials(KEY)] == [stored.config]
    assert store.states(ids([planned(2)])) == {}


def test_more_trials_at_once_than_a_statement_takes(store: Store) -> None:
    trials = plan(2 * IDS_A_STATEMENT)
    store.register(KEY, trials)
    assert store.states(ids(trials)) == dict.fromkeys(ids(trials), "planned")
    assert store.claim(ids(trials), owner="a driver", lease_s=60) == ids(trials)
    assert store.release(ids(trials), owner="a driver") == len(trials)
