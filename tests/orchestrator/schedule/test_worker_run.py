from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.schedule import worker_run
from orchestrator.schedule.worker_run import run_here
from orchestrator.store.records import PlannedTrial, StudyKey
from orchestrator.store.store import Store
from orchestrator.worker import TrialFunctions
from tests.support.notes import RecordingListener
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
from trainables.config import Command, Goal
from trainables.errors import UserError
from trainables.runtime import Runtime
from trainables.trial_folder import TrialFolder, trial_directory

KEY = StudyKey(study="mixed", scale="smoke", corpus="none")
SEEDS = [SOUND, RAISES, DIVERGES, EXITS, KILLED_ONCE, BAD_INPUT, SOUND + 1]
CAUSES = {
    RAISES: "on strike",
    EXITS: "process died.*in each of 2",
    BAD_INPUT: "no train.txt",
    DIVERGES: "not finite",
}


def folder_of(storage: Path, trial: PlannedTrial) -> TrialFolder:
    return TrialFolder(trial_directory(storage, trial.trial_id), trial.trial_id)


def run(storage: Path, store: Store, seeds: list[int], **options: Any) -> list[PlannedTrial]:
    plan = planned(seeds)
    store.register(KEY, plan)
    assert not run_here(plan, work_in(storage, store, options)).interrupted
    return plan


def test_each_trial_ends_for_all_workers(store: Store, tmp_path: Path) -> None:
    """A failure is a file, too, which another worker reads."""
    plan = run(tmp_path, store, SEEDS)
    for trial in plan:
        seed = trial.config["seed"]
        result = folder_of(tmp_path, trial).result()
        assert result is not None
        outcome = result[0]
        state = {DIVERGES: "diverged", SOUND: "done", KILLED_ONCE: "done"}
        assert outcome.state == state.get(seed - seed % 100, "failed")
        assert re.search(CAUSES.get(seed, "^None$"), str(outcome.cause))
    starts = [line for line in log_lines(tmp_path) if line.startswith("start")]
    again = [f"start {seed} 2" for seed in (EXITS, KILLED_ONCE)]
    assert sorted(starts) == sorted([*(f"start {seed} 0" for seed in SEEDS), *again])


def test_stalled_trial_fails(store: Store, tmp_path: Path) -> None:
    (trial,) = run(tmp_path, store, [STANDS], trial_timeout_s=10.0, max_attempts=1)
    result = folder_of(tmp_path, trial).result()
    assert result is not None and re.match(r"it stalled for \d+ s", str(result[0].cause))


def test_full_disk_stops_a_worker(store: Store, tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", kib=40) as disk:
        with pytest.raises(UserError, match="is full"):
            run(disk, store, list(range(SOUND, SOUND + 8)))
        change(disk, "size=1m")
        plan = planned(list(range(SOUND, SOUND + 8)))
        run_here(plan, work_in(disk, store))
        assert all(folder_of(disk, trial).outcome() for trial in plan)
        ends = [line for line in log_lines(disk) if line.startswith("end")]
        assert len(ends) == len(set(ends)) == 8


def test_worker_ends_without_free_trials(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another worker has one of two trials and keeps it."""
    monkeypatch.setattr(worker_run, "IDLE_S", 4.0)
    trials = [
        PlannedTrial.of(Command(["sh", "-c", f"""echo '{{{{"loss": {number}}}}}'"""]), str(number))
        for number in range(2)
    ]
    store.register(KEY, trials)
    runtime = Runtime(worker="process 1 on here", goal=Goal("loss", "min", ""))
    listener = RecordingListener()
    work = work_in(
        tmp_path,
        store,
        {"runtime": runtime},
        listener=listener,
        functions=TrialFunctions(),
    )
    held = folder_of(tmp_path, trials[0])
    held.path.mkdir(parents=True)
    with held.locked():
        held.take_over("process 2 on here")
        run_here(trials, work)
    assert [note for note in listener.notes if "Other workers" in note]
    states = store.states([trial.trial_id for trial in trials])
    assert list(states.values()) == ["planned", "done"]
    held.fence.check()
    run_here(trials[:1], replace(work, listener=RecordingListener()))
    assert held.outcome() is not None
