"""What looks on while others work is told what the checked methods of the store say too."""

from __future__ import annotations

import time

import numpy as np

from orchestrator.store import Store, StudyKey
from tests.support.store_rows import KEY, RUN, SPECTRUM, epoch, ids, outcome, plan
from trainables.trial_folder.outcome import FinalState

OTHER = StudyKey(study="seeds", scale="smoke", corpus="ptb")


def test_what_runs_is_told_once_a_study_with_its_last_epoch(store: Store) -> None:
    trials = plan(3)
    store.register(KEY, trials)
    store.register(OTHER, trials[:1])
    attempts = store.claim(ids(trials[:2]), owner="host:1:2", lease_s=60)
    store.record_epochs(
        {trials[0].trial_id: [epoch(1, valid_loss=6.0), epoch(2, valid_loss=5.5)]},
        attempts=attempts,
    )
    running = store.running()
    assert [(trial.name, trial.key, trial.epoch, trial.valid_loss) for trial in running] == [
        ("trial 0", KEY, 2, 5.5),
        ("trial 1", KEY, None, None),
        ("trial 0", OTHER, 2, 5.5),
    ]
    assert {(trial.owner, trial.attempt, trial.epoch_count) for trial in running} == {
        ("host:1:2", 1, None)
    }
    assert all(trial.alive for trial in running)
    store.renew("host:1:2", -1)
    assert not any(trial.alive for trial in store.running())


def test_the_lost_come_newest_first_and_no_more_than_asked_for(store: Store) -> None:
    trials = plan(4)
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    for place in (2, 0, 3):
        end = outcome(trials[place].trial_id, state="failed", cause=f"no {place}")
        assert store.record(end, run_id=run_id, spectrum=None, attempt=1)
        time.sleep(0.01)
    store.record(outcome(trials[1].trial_id), run_id=run_id, spectrum=None)
    assert [(trial.name, trial.state, trial.cause) for trial in store.lost(2)] == [
        ("trial 3", "failed", "no 3"),
        ("trial 0", "failed", "no 0"),
    ]


def test_a_lost_trial_of_two_studies_is_counted_once_and_one_of_none_not_at_all(
    store: Store,
) -> None:
    trials = plan(4)
    store.register(KEY, trials)
    store.register(OTHER, trials[:2])
    run_id = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    states: tuple[FinalState, ...] = ("failed", "done", "diverged")
    for trial_id, state in zip(ids(trials), states, strict=False):
        assert store.record(outcome(trial_id, state=state), run_id=run_id, spectrum=None, attempt=1)
    assert store.lost_count() == 2
    store.register(KEY, trials[:2])
    assert store.lost_count() == 1


def test_ends_are_those_of_the_newest_run_that_goes_on_and_has_some(store: Store) -> None:
    trials = plan(6)
    store.register(KEY, trials)
    store.register(OTHER, trials[4:])
    assert store.ended_in_run(KEY) == (0, 0.0)
    first = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    for trial_id in ids(trials[:2]):
        store.record(outcome(trial_id), run_id=first, spectrum=None)
    time.sleep(0.2)
    second = store.begin_run(RUN)
    # A run that has brought nothing of this study to its end says nothing of its pace.
    count, seconds = store.ended_in_run(KEY)
    assert count == 2 and 0.2 <= seconds < 30
    store.record(outcome(trials[4].trial_id), run_id=second, spectrum=None)
    count, seconds = store.ended_in_run(KEY)
    assert count == 1 and seconds < 30
    assert store.ended_in_run(OTHER)[0] == 1
    store.end_run(second)
    assert store.ended_in_run(KEY)[0] == 2 and store.ended_in_run(OTHER) == (0, 0.0)
    store.end_run(first)
    assert store.ended_in_run(KEY) == (0, 0.0)


def test_a_version_changes_with_whatever_a_table_shows_and_with_nothing_else(store: Store) -> None:
    trials = plan(3)
    store.register(KEY, trials)
    planned = store.versions(KEY)
    assert list(planned) == ids(trials)
    run_id = store.begin_run(RUN)
    attempts = store.claim(ids(trials[:1]), owner="a", lease_s=60)
    claimed = store.versions(KEY)
    store.record_epochs({trials[0].trial_id: [epoch(1)]}, attempts=attempts)
    store.renew("a", 90)
    assert store.versions(KEY) == claimed
    store.record(outcome(trials[0].trial_id), run_id=run_id, spectrum=None)
    ended = store.versions(KEY)
    store.add_measurement(trials[0].trial_id, "later@1", {"a": 1})
    versions = [planned, claimed, ended, store.versions(KEY)]
    assert len({at[trials[0].trial_id] for at in versions}) == 4
    assert all(at[trial_id] == planned[trial_id] for at in versions for trial_id in ids(trials[1:]))


def test_a_trial_is_told_by_the_start_of_its_id_with_all_its_studies(store: Store) -> None:
    trials = plan(3)
    store.register(KEY, trials)
    store.register(OTHER, trials[:1])
    assert store.studies_of(trials[0].trial_id[:12]) == [
        (trials[0].trial_id, KEY),
        (trials[0].trial_id, OTHER),
    ]
    for start in ("zz", "%", "_" * 64, trials[1].trial_id + "0"):
        assert store.studies_of(start) == []


def test_some_trials_are_read_as_all_of_them_are(store: Store) -> None:
    trials = plan(5)
    store.register(KEY, trials)
    run_id = store.begin_run(RUN)
    store.claim(ids(trials), owner="a", lease_s=60)
    for trial_id in ids(trials[:4]):
        store.record(
            outcome(trial_id, environment={"torch": "1"}), run_id=run_id, spectrum=SPECTRUM
        )
    some = ids(trials)[1:5:2]
    assert store.results(KEY, some) == [
        row for row in store.results(KEY) if row["trial_id"] in some
    ]
    assert store.environments(KEY, some) == {
        trial_id: values for trial_id, values in store.environments(KEY).items() if trial_id in some
    }
    spectra = store.spectra(KEY)
    for trial_id in ids(trials):
        spectrum = store.spectrum(trial_id)
        assert (spectrum is None) == (trial_id not in spectra)
        assert spectrum is None or np.array_equal(spectrum, spectra[trial_id])
