"""Runs, and asking one elsewhere to stop: `begin_run`, `end_run`, `ask_to_stop`, `requests`."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from orchestrator.store.store import Store
from tests.support.store_rows import KEY, RUN, ids, plan

VARIANT = replace(KEY, corpus="another")


def test_a_request_reaches_the_runs_that_had_begun_and_no_later_one(store: Store) -> None:
    trials = plan(3)
    store.register(KEY, trials)
    store.register(VARIANT, trials)
    first = store.begin_run(RUN)
    assert not store.requests(KEY, first).stop_study
    time.sleep(0.002)
    store.ask_to_stop(KEY)
    store.ask_to_stop(ids(trials)[1])
    time.sleep(0.002)
    second = store.begin_run(RUN)
    request, variant, later = store.requests(KEY, first), store.requests(VARIANT, first), store.requests(KEY, second)
    assert (request.stop_study, variant.stop_study, later.stop_study) == (True, False, False)
    assert request.stop_trials == variant.stop_trials == {ids(trials)[1]}
    assert later.stop_trials == frozenset()


def test_planning_a_study_again_shows(store: Store) -> None:
    store.register(KEY, plan(1))
    run_id = store.begin_run(RUN)
    before = store.requests(KEY, run_id).planned_at
    time.sleep(0.002)
    store.register(KEY, plan(2))
    assert store.requests(KEY, run_id).planned_at > before


def test_what_the_store_does_not_know_cannot_be_stopped(store: Store) -> None:
    for unknown in (KEY, "0" * 64):
        with pytest.raises(KeyError):
            store.ask_to_stop(unknown)


def test_runs_begin_and_end(store: Store) -> None:
    first, second = store.begin_run(RUN), store.begin_run(RUN)
    assert first != second
    store.end_run(first)
    with pytest.raises(KeyError):
        store.end_run(second + 1)
