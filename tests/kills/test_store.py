from __future__ import annotations

import random
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from orchestrator.store import STATES, PlannedTrial, open_store
from tests.support.processes import Process
from tests.support.store_rows import KEY, RUN, SPECTRUM, epoch, ids, outcome, plan, planned


def claim(report: Callable[[str], None], url: str, owner: str, count: int) -> None:
    trial_ids = ids(plan(count))
    # In equal order, one process would follow the other and get nothing.
    random.Random(owner).shuffle(trial_ids)
    with open_store(url) as store:
        for start in range(0, count, 5):
            for trial_id in store.claim(trial_ids[start : start + 10], owner=owner, lease_s=600):
                report(trial_id)
            time.sleep(0.02)  # SQLite polls for its write lock, so leave it free for a while


def claiming(folder: Path, url: str, owners: str, count: int) -> list[Process]:
    return [Process(folder, claim, url, owner, count) for owner in owners]


def test_processes_never_share_a_claim(store_url: str, tmp_path: Path) -> None:
    trials = plan(200)
    with open_store(store_url) as store:
        store.register(KEY, trials)
        first, second = (set(process.end()) for process in claiming(tmp_path, store_url, "ab", 200))
        owners = {row.trial_id: row.owner for row in store.trials(KEY)}
        attempts = {row.trial_id: row.attempt for row in store.trials(KEY)}
    assert not first & second
    assert first | second == set(ids(trials))
    assert first, "the first process got nothing: they did not run at the same time"
    assert second, "the second process got nothing: they did not run at the same time"
    assert owners == dict.fromkeys(first, "a") | dict.fromkeys(second, "b")
    assert set(attempts.values()) <= {1, 2}, "a process may claim its own trials a second time"


def test_processes_create_one_store(store_url: str, tmp_path: Path) -> None:
    for process in claiming(tmp_path, store_url, "abc", 5):
        process.end()
    with open_store(store_url, create=False) as store:
        assert store.studies() == []


def test_threads_share_one_store(store_url: str) -> None:
    trials = plan(40)
    with open_store(store_url) as store, ThreadPoolExecutor(4) as threads:
        store.register(KEY, trials)
        run_id = store.begin_run(RUN)

        def work(trial_id: str) -> bool:
            assert store.claim([trial_id], owner="a", lease_s=600) == {trial_id: 1}
            store.record_epochs(
                {every: [epoch(1)] for every in ids(trials)}, attempts=dict.fromkeys(ids(trials), 1)
            )
            store.renew("a", 600)
            return store.record(outcome(trial_id), run_id=run_id)

        assert list(threads.map(work, ids(trials))) == [True] * 40
        assert {row.state for row in store.trials(KEY)} == {"done"}


def record_all(report: Callable[[str], None], url: str, count: int) -> None:
    with open_store(url) as store:
        run_id = store.begin_run(RUN)
        for trial_id in ids(plan(count)):
            store.record(outcome(trial_id, epochs=50), run_id=run_id, spectrum=np.arange(2_000.0))
            report(trial_id)


def test_kill_leaves_no_partial_trial(store_url: str, tmp_path: Path) -> None:
    trials = plan(500)
    with open_store(store_url) as store:
        store.register(KEY, trials)
    process = Process(tmp_path, record_all, store_url, len(trials))
    recorded = [process.receive()]
    time.sleep(random.uniform(0.0, 0.3))
    recorded += process.kill()
    time.sleep(0.2)  # a server may still be finishing the dead client's last transaction
    with open_store(store_url) as store:
        states = store.states(ids(trials))
        done = [trial_id for trial_id in ids(trials) if states[trial_id] == "done"]
        assert 0 < len(done) < len(trials), "the kill came too early or too late"
        assert set(recorded) <= set(done), "each trial for which record() returned must be kept"
        assert len(done) <= len(recorded) + 1
        expected = outcome("", epochs=50)
        metrics = expected.measurements["perplexity@1"] | expected.measurements["spectrum@1"]
        spectra = store.spectra(KEY)
        for row in store.results(KEY):
            trial_id = row["trial_id"]
            spectrum = spectra.get(trial_id)
            if states[trial_id] == "done":
                assert store.epochs(trial_id) == list(expected.epochs)
                assert row["metrics"] == metrics
                np.testing.assert_array_equal(spectrum, np.arange(2_000.0))
            else:
                assert (states[trial_id], row["metrics"], spectrum) == ("planned", {}, None)
                assert store.epochs(trial_id) == []
        (summary,) = store.studies()
        assert summary.counts == dict.fromkeys(STATES, 0) | {
            "done": len(done),
            "planned": 500 - len(done),
        }
    open_store(store_url, create=False).close()


LOT = 100
"""Trials per transaction. The number is small, so that readers see many states of the store."""


def lot(first: int) -> list[PlannedTrial]:
    return [planned(number) for number in range(first, first + LOT)]


def write(report: Callable[[str], None], url: str, count: int) -> None:
    with open_store(url) as store:
        run_id = store.begin_run(RUN)
        for first in range(0, count, LOT):
            store.register(KEY, lot(first))
            for trial_id in ids(lot(first)):
                attempts = store.claim([trial_id], owner="a", lease_s=600)
                store.record_epochs({trial_id: [epoch(1)]}, attempts=attempts)
                store.renew("a", 600)
                store.record(outcome(trial_id), run_id=run_id, spectrum=SPECTRUM, attempt=1)
    report("written")


def read(report: Callable[[int], None], url: str, count: int) -> None:
    right, (last,) = outcome(""), ids([planned(count - 1)])
    metrics = right.measurements["perplexity@1"] | right.measurements["spectrum@1"]
    reads, first, done = 0, "", list[str]()
    with open_store(url, create=False) as store:
        while last not in done:
            rows, before = store.results(KEY), done
            done = [row["trial_id"] for row in rows if row["state"] == "done"]
            assert rows[0]["trial_id"] != first or done[: len(before)] == before, (
                "a done trial must stay done"
            )
            first, reads = rows[0]["trial_id"], reads + 1
            assert len(rows) == LOT
            assert all(
                row["metrics"] == (metrics if row["state"] == "done" else {}) for row in rows
            )
            (summary,) = store.studies()
            assert sum(summary.counts.values()) == LOT
            if done:
                assert store.epochs(done[-1]) == list(right.epochs)
            time.sleep(0.1)  # otherwise eight readers leave the writer no CPU time
    report(reads)


@pytest.mark.chaos(400, 100_000)
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_readers_are_right_during_writes(store_url: str, tmp_path: Path, rounds: int) -> None:
    with open_store(store_url) as store:
        store.register(KEY, lot(0))
    readers = [Process(tmp_path, read, store_url, rounds // 4) for _ in range(8)]
    writer = Process(tmp_path, write, store_url, rounds // 4)
    assert writer.end(60 + rounds / 10) == ["written"]
    for reader in readers:
        (reads,) = reader.end(60)
        assert reads > 1
    open_store(store_url, create=False).close()
