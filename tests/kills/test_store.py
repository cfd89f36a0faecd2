"""What holds between processes: trials claimed at the same time, a process killed while it records."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

import orchestrator
from orchestrator.store.integrity import check
from orchestrator.store.opening import open_store
from orchestrator.store.records import STATES
from tests.support.store_rows import KEY, RUN, epoch, ids, outcome, plan

REPOSITORY = Path(orchestrator.__file__).parents[1]


def start(program: str, *arguments: str) -> subprocess.Popen[str]:
    """Start a program of tests/support, with pipes to and from it."""
    name = f"tests.support.{program}"
    return subprocess.Popen(
        [sys.executable, "-m", name, *arguments],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def say_go(process: subprocess.Popen[str]) -> None:
    """Let a claiming program that waits for its signal begin."""
    assert process.stdin is not None
    process.stdin.write("go\n")
    process.stdin.flush()


def test_processes_that_claim_at_the_same_time_never_get_the_same_trial(store_url: str) -> None:
    trials = plan(200)
    with open_store(store_url) as store:
        store.register(KEY, trials)
        processes = [start("claiming_program", store_url, owner, "200") for owner in ("a", "b")]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            say_go(process)
        got = [process.communicate(timeout=60)[0].split() for process in processes]
        owners = {row.trial_id: row.owner for row in store.trials(KEY)}
        attempts = {row.trial_id: row.attempt for row in store.trials(KEY)}
    assert [process.returncode for process in processes] == [0, 0]
    first, second = (set(each) for each in got)
    assert not first & second
    assert first | second == set(ids(trials))
    assert first, "the first process got nothing: they did not run at the same time"
    assert second, "the second process got nothing: they did not run at the same time"
    assert owners == dict.fromkeys(first, "a") | dict.fromkeys(second, "b")
    assert set(attempts.values()) <= {1, 2}, "lots overlap, a process claims its own trials once more"


def test_processes_may_create_the_same_store_at_the_same_time(url: str) -> None:
    processes = [start("claiming_program", url, owner, "5") for owner in ("a", "b", "c")]
    for process in processes:
        say_go(process)
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert check(url) == []


def test_threads_share_one_store(store_url: str) -> None:
    trials = plan(40)
    with open_store(store_url) as store, ThreadPoolExecutor(4) as threads:
        store.register(KEY, trials)
        run_id = store.begin_run(RUN)

        def work(trial_id: str) -> bool:
            assert store.claim([trial_id], owner="a", lease_s=600) == [trial_id]
            store.record_epochs({each: [epoch(1)] for each in ids(trials)})
            store.renew("a", 600)
            return store.record(outcome(trial_id), run_id=run_id, spectrum=None)

        assert list(threads.map(work, ids(trials))) == [True] * 40
        assert {row.state for row in store.trials(KEY)} == {"done"}


def test_a_process_killed_while_it_records_leaves_each_trial_absent_or_complete(store_url: str) -> None:
    trials = plan(500)
    with open_store(store_url) as store:
        store.register(KEY, trials)
    process = start("recording_program", store_url, "500")
    assert process.stdout is not None
    printed = [process.stdout.readline().strip()]
    time.sleep(random.Random().uniform(0.0, 0.3))
    process.kill()
    printed += process.stdout.read().split()
    process.wait()
    time.sleep(0.2)  # a server may still be finishing the dead client's last transaction
    with open_store(store_url) as store:
        states = store.states(ids(trials))
        done = [trial_id for trial_id in ids(trials) if states[trial_id] == "done"]
        assert 0 < len(done) < len(trials), "the kill came too early or too late to mean anything"
        assert set(printed) <= set(done), "what record() returned from is kept"
        assert len(done) <= len(printed) + 1
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
        assert summary.counts == dict.fromkeys(STATES, 0) | {"done": len(done), "planned": 500 - len(done)}
    assert check(store_url) == []
