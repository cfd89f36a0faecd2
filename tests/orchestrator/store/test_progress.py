from __future__ import annotations

import time

import pytest

from orchestrator.store import Store, StudyKey
from tests.support.store_rows import KEY, RUN, epoch, fail, ids, outcome, plan

OTHER = StudyKey(study="seeds", scale="smoke", corpus="ptb")
TRIALS = plan(6)
IDS = ids(TRIALS)


@pytest.fixture
def run_id(store: Store) -> int:
    store.register(KEY, TRIALS)
    store.register(OTHER, TRIALS[:2])
    return store.begin_run(RUN)


@pytest.mark.usefixtures("run_id")
def test_running_trials_have_last_epoch(store: Store) -> None:
    attempts = store.claim([IDS[0], IDS[2]], owner="host:1:2", lease_s=60)
    epochs = [epoch(1, valid_loss=6.0), epoch(2, valid_loss=5.5)]
    store.record_epochs({IDS[0]: epochs}, attempts=attempts)
    store.record_starts({IDS[2]: "node 1"}, attempts=attempts)
    running = store.running()
    assert [
        (trial.name, trial.key, trial.host, trial.epoch, trial.metrics.get("valid_loss"))
        for trial in running
    ] == [
        ("trial 0", KEY, None, 2, 5.5),
        ("trial 2", KEY, "node 1", None, None),
        ("trial 0", OTHER, None, 2, 5.5),
    ]
    owners = {(trial.owner, trial.attempt, trial.epoch_count, trial.alive) for trial in running}
    assert owners == {("host:1:2", 1, None, True)}
    store.renew("host:1:2", -1)
    assert not any(trial.alive for trial in store.running())


def test_lost_trials_come_newest_first(store: Store, run_id: int) -> None:
    for number in (2, 0, 3):
        fail(store, IDS[number], cause=f"no {number}", run_id=run_id)
        time.sleep(0.01)
    store.record(outcome(IDS[1]), run_id=run_id)
    rows = [(trial.name, trial.key, trial.state, trial.cause) for trial in store.lost()]
    assert rows == [
        ("trial 3", KEY, "failed", "no 3"),
        ("trial 0", KEY, "failed", "no 0"),
        ("trial 0", OTHER, "failed", "no 0"),
        ("trial 2", KEY, "failed", "no 2"),
    ]


def test_ends_are_from_newest_run(store: Store, run_id: int) -> None:
    assert store.ended_in_run(KEY) == (0, 0.0)
    for trial_id in IDS[2:4]:
        store.record(outcome(trial_id), run_id=run_id)
    time.sleep(0.2)
    second = store.begin_run(RUN)
    # A run that ended no trial of this study does not affect its pace.
    count, seconds = store.ended_in_run(KEY)
    assert count == 2 and 0.2 <= seconds < 30
    store.record(outcome(IDS[0]), run_id=second)
    assert [store.ended_in_run(key)[0] for key in (KEY, OTHER)] == [1, 1]
    store.end_run(second)
    assert [store.ended_in_run(key)[0] for key in (KEY, OTHER)] == [2, 0]
    store.end_run(run_id)
    assert store.ended_in_run(KEY) == (0, 0.0)


def test_version_changes_with_the_table(store: Store, run_id: int) -> None:
    versions = [store.versions(KEY)]
    assert list(versions[0]) == IDS
    attempts = store.claim(IDS[:1], owner="a", lease_s=60)
    versions.append(store.versions(KEY))
    store.record_epochs({IDS[0]: [epoch(1)]}, attempts=attempts)
    store.renew("a", 90)
    assert store.versions(KEY) == versions[-1], "nothing else changes the version"
    store.record(outcome(IDS[0]), run_id=run_id)
    versions.append(store.versions(KEY))
    store.add_measurement(IDS[0], "later@1", {"a": 1})
    versions.append(store.versions(KEY))
    assert len({version[IDS[0]] for version in versions}) == 4
    assert all(version[other] == versions[0][other] for version in versions for other in IDS[1:])


@pytest.mark.usefixtures("run_id")
def test_first_digits_find_a_trial(store: Store) -> None:
    assert store.studies_of(IDS[0][:12]) == [(IDS[0], KEY), (IDS[0], OTHER)]
    for start in ("zz", "%", "_" * 64, IDS[1] + "0"):
        assert store.studies_of(start) == []
