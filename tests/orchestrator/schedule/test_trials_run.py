from __future__ import annotations

import itertools
import re
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import ray

from orchestrator.schedule import driver
from orchestrator.schedule.trials_run import run_trials
from orchestrator.store.opening import open_store
from orchestrator.store.records import StudyKey, TrialRow
from orchestrator.store.store import Store
from tests.support.notes import RecordingListener
from tests.support.one_ray import start_ray
from tests.support.scripted_trials import (
    BAD_INPUT,
    DIVERGES,
    EXITS,
    KILLED_ONCE,
    RAISES,
    SOUND,
    STANDS,
    log_lines,
    planned,
    work_in,
)
from tests.support.small_disk import change, small_disk
from trainables.errors import UserError

KEY = StudyKey(study="mixed", scale="smoke", corpus="none")
SEEDS = [SOUND, RAISES, SOUND + 1, DIVERGES, EXITS, SOUND + 2, KILLED_ONCE, BAD_INPUT, SOUND + 3]

pytestmark = pytest.mark.usefixtures("one_ray")


class Swept:
    def __init__(self, folder: Path, store: Store) -> None:
        plan = planned(SEEDS)
        self.folder, self.store, self.listener = folder, store, RecordingListener()
        store.register(KEY, plan)
        self.summary = run_trials(plan, work_in(folder, store, listener=self.listener))
        self.rows: dict[int, TrialRow] = {row.config["seed"]: row for row in store.trials(KEY)}


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Swept]:
    start_ray()
    folder = tmp_path_factory.mktemp("swept")
    with open_store(f"sqlite:///{folder}/results.db") as store:
        yield Swept(folder, store)


def test_failure_costs_only_its_trial(
    swept: Swept,
) -> None:
    states = {seed: row.state for seed, row in swept.rows.items()}
    troubled = {RAISES: "failed", DIVERGES: "diverged", EXITS: "failed", BAD_INPUT: "failed"}
    assert states == dict.fromkeys(SEEDS, "done") | troubled
    assert swept.rows[RAISES].cause == "RuntimeError: the weights are on strike"
    assert swept.rows[BAD_INPUT].cause == "The folder has no train.txt: put one there."
    assert swept.rows[DIVERGES].cause == "The loss is not finite."
    assert "process died" in str(swept.rows[EXITS].cause)
    assert not swept.summary.interrupted


def test_only_dead_trials_run_again(
    swept: Swept,
) -> None:
    starts = [line for line in log_lines(swept.folder) if line.startswith("start")]
    twice = [f"start {KILLED_ONCE} 2", f"start {EXITS} 2"]
    assert sorted(starts) == sorted([*(f"start {seed} 0" for seed in SEEDS), *twice])
    assert {seed for seed, row in swept.rows.items() if row.attempt == 2} == {KILLED_ONCE, EXITS}


def test_listener_and_store_get_trials(swept: Swept) -> None:
    assert set(swept.listener.starts) == {f"seed={seed}" for seed in SEEDS}
    assert {trial_id: outcome.state for trial_id, outcome in swept.listener.outcomes.items()} == {
        row.trial_id: row.state for row in swept.rows.values()
    }
    assert [epoch.epoch for epoch in swept.store.epochs(swept.rows[SOUND].trial_id)] == [1, 2, 3, 4]


def test_stalled_worker_is_ended(store: Store, tmp_path: Path) -> None:
    plan = planned([STANDS])
    store.register(KEY, plan)
    run_trials(plan, work_in(tmp_path, store, {"trial_timeout_s": 10.0, "max_attempts": 1}))
    (stalled_trial,) = store.trials(KEY)
    assert stalled_trial.state == "failed"
    assert re.match(
        r"it stalled for \d+ s \(all threads of its process stopped; last seen",
        str(stalled_trial.cause),
    )


def test_full_disk_stops_the_sweep(store: Store, tmp_path: Path) -> None:
    plan = planned(list(range(SOUND, SOUND + 8)))
    ids = [trial.trial_id for trial in plan]
    store.register(KEY, plan)
    with small_disk(tmp_path / "disk", kib=40) as disk:
        message = f"The disk of {disk} is full: free space there and run the same command again"
        with pytest.raises(UserError, match=re.escape(message)):
            run_trials(plan, work_in(disk, store, {"max_concurrent": 1}))
        states = Counter(store.states(ids).values())
        assert states["done"] >= 1
        assert states == {"done": states["done"], "planned": 8 - states["done"]}
        change(disk, "size=1m")
        run_trials(
            [trial for trial in plan if store.states(ids)[trial.trial_id] != "done"],
            work_in(disk, store, {"max_concurrent": 1}),
        )
        assert Counter(store.states(ids).values()) == {"done": 8}
        ends = [line for line in log_lines(disk) if line.startswith("end")]
        assert sorted(ends) == sorted(f"end {SOUND + number}" for number in range(8))


def test_waiting_sweep_moves_and_stops(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beats: list[float] = []
    monkeypatch.setattr(driver, "beat", lambda: beats.append(time.monotonic()))
    plan = planned([SOUND])
    store.register(KEY, plan)
    store.claim([plan[0].trial_id], owner="another", lease_s=600)
    request = threading.Timer(3, store.ask_to_stop, [KEY])
    request.start()
    assert run_trials(plan, work_in(tmp_path, store, study=KEY)).interrupted
    request.join()
    assert beats[-1] - beats[0] > 2, "it waited"
    assert max(later - earlier for earlier, later in itertools.pairwise(beats)) < 3
    assert [row.state for row in store.trials(KEY)] == ["running"]


def test_waiting_sweep_frees_machines(store: Store, tmp_path: Path) -> None:
    plan = planned([SOUND, SOUND + 1])
    store.register(KEY, plan)
    store.claim([plan[1].trial_id], owner="another", lease_s=600)
    free_counts: list[float] = []
    ask: Any = ray  # its functions have no types

    def stop_when_free() -> None:
        deadline_s = time.monotonic() + 60
        while time.monotonic() < deadline_s and cpus not in free_counts:
            time.sleep(0.2)
            if store.states([plan[0].trial_id])[plan[0].trial_id] == "done":
                free_counts.append(ask.available_resources().get("CPU", 0))
        store.ask_to_stop(KEY)

    cpus = ask.cluster_resources()["CPU"]
    watch = threading.Thread(target=stop_when_free)
    watch.start()
    assert run_trials(plan, work_in(tmp_path, store, study=KEY)).interrupted
    watch.join()
    assert free_counts[0] < cpus, "at first the worker was kept for a next pack"
    assert free_counts[-1] == cpus
