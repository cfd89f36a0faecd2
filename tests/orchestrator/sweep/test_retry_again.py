"""A `retry` whose process died goes on with what it had planned again, and with nothing else."""

from __future__ import annotations

from orchestrator.store.store import Store
from orchestrator.sweep.study_run import _still_open
from tests.support.store_rows import KEY, RUN, ids, outcome, plan


def test_what_was_planned_again_and_has_not_ended_is_what_is_left(store: Store) -> None:
    trials = plan(4)
    never_begun, reset, running, failed_again = ids(trials)
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    attempts = store.claim([reset, running, failed_again], owner="a", lease_s=60)
    for trial_id in (reset, failed_again):
        store.record(
            outcome(trial_id, state="failed"),
            run_id=run_id,
            spectrum=None,
            attempt=attempts[trial_id],
        )
    store.reset([reset])
    left = [trial.trial_id for trial in _still_open(trials, store, KEY)]
    assert left == [reset, running]
    assert never_begun not in left
