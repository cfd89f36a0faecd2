from __future__ import annotations

import os
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal

import pytest
import ray

from orchestrator.schedule import run_trials
from orchestrator.schedule.failures import Failures
from orchestrator.store import Store, StudyKey, by_cause, open_store
from orchestrator.worker import TrialFunctions
from tests.orchestrator.schedule.numbered_trials import Sweep, states
from tests.orchestrator.schedule.test_uneven_clusters import cluster
from tests.support.command import wait_for
from tests.support.notes import RecordingListener
from tests.support.processes import Process, Report
from tests.support.scripted_trials import RAISES, SOUND, log, log_lines, planned, work_in
from trainables.config import TrialConfig
from trainables.errors import UserError
from trainables.trial_folder import TrialOutcome

KEY = StudyKey(study="failing", scale="smoke", corpus="none")
STRIKE = "RuntimeError: the weights are on strike"


class Run:
    """Trials that end on machines, one after another."""

    def __init__(self, limit: int | None = None) -> None:
        self.failures, self.count = Failures(limit), 0

    def end(
        self, cause: str | None, machine: str = "one", *, gpu: int = 0,
        state: Literal["failed", "diverged"] = "failed", here: bool = True,
    ) -> None:  # fmt: skip
        self.count += 1
        if here:
            self.failures.places[str(self.count)] = machine, f"{machine}.lab, GPU {gpu}"
        outcome = TrialOutcome(
            trial_id=str(self.count), state="done" if cause is None else state, cause=cause
        )
        self.failures.count(outcome)

    @property
    def bad(self) -> list[str]:
        return list(self.failures.bad_machines)


def test_ten_failures_at_first_stop() -> None:
    run = Run()
    for number in range(9):
        run.end("no such file" if number < 4 else f"shape {number} at 0x7f3a5{number}c0")
        run.end("failed in another driver's run", here=False)
    with pytest.raises(UserError, match=r"10 failed trials .* 6 with this cause: shape 4 at"):
        run.end("shape 77 at 0x0")


@pytest.mark.parametrize("other", [{"cause": None}, {"cause": "NaN", "state": "diverged"}])
def test_other_end_lifts_the_default(other: dict[str, Any]) -> None:
    run = Run()
    for number in range(40):
        run.end(**other if number == 9 else {"cause": "a bug"})
    assert run.count == 40, "no failure stopped the run"


def test_user_sets_the_limit() -> None:
    run = Run(2)
    for cause in (None, "a bug", None):
        run.end(cause)
    with pytest.raises(UserError, match="2 failed trials"):
        run.end("another bug")


def test_machine_with_own_cause_is_bad() -> None:
    run = Run(99)
    for _ in range(2):
        run.end("GPU fell off", "two", gpu=3)
        run.end(None, "two", gpu=1)
        run.end("a bug", "one")
    assert run.bad == []
    run.end("GPU fell off", "two", gpu=3)
    assert run.bad == ["two"]
    (sentence,) = run.failures.bad_machines.values()
    assert "two.lab, GPU 3" in sentence and "GPU fell off" in sentence and "retry" in sentence


def test_shared_cause_blames_no_machine() -> None:
    run = Run(99)
    for _ in range(3):
        run.end("a bug in epoch 1", "one")
    assert run.bad == ["one"]
    run.end("a bug in epoch 2", "two")
    assert run.bad == []
    for _ in range(3):
        run.end("a bug in epoch 3", "two")
    assert run.bad == []


def test_success_ends_a_streak() -> None:
    run = Run(99)
    for cause in ("a bug", "a bug", None, "a bug", "a bug"):
        run.end(cause)
    assert run.bad == []


def test_died_worker_is_a_failure(store: Store, tmp_path: Path) -> None:
    sweep = Sweep(store, tmp_path, 1, options={"max_failures": 1})
    sweep.die("a", at=0)
    with pytest.raises(UserError, match=r"1 failed trial .*its process died \(in each of 2"):
        sweep.die("b", at=0)
    sweep.close()
    assert states(store)[0] == "failed"


@pytest.mark.usefixtures("one_ray")
def test_stopped_run_can_go_on(store: Store, tmp_path: Path) -> None:
    plan = planned([*range(RAISES, RAISES + 12), *range(SOUND, SOUND + 18)])
    store.register(KEY, plan)
    with pytest.raises(UserError, match=f"10 failed trials .* 10 with this cause: {STRIKE}"):
        run_trials(plan, work_in(tmp_path, store, {"max_concurrent": 1}))
    assert Counter(row.state for row in store.trials(KEY)) == {"failed": 10, "planned": 20}
    (group,) = by_cause(store.lost())
    assert len(group) == 10 and {trial.host for trial in group} == {os.uname().nodename}
    rest = [row for row in store.trials(KEY) if row.state == "planned"]
    run_trials(rest[::-1], work_in(tmp_path, store))
    assert Counter(row.state for row in store.trials(KEY)) == {"failed": 12, "done": 18}


def run_unless_bad(config: TrialConfig, *, directory: Path, **_: Any) -> TrialOutcome:
    machine, storage = ray.get_runtime_context().get_node_id(), directory.parents[2]
    bad = (storage / "bad").read_text()
    log(directory, machine)
    if machine == bad:
        raise OSError("no device")
    wait_for(lambda: log_lines(storage).count(bad) >= 3, timeout_s=120, event="three failures")
    return TrialOutcome(trial_id=config.trial_id, state="done")


def sweep_with_a_bad_machine(report: Report, folder: Path) -> None:
    plan, listener = planned(range(16)), RecordingListener()
    with ExitStack() as stack:
        nodes: Any = stack.enter_context(cluster())
        store = stack.enter_context(open_store(f"sqlite:///{folder}/results.db"))
        bad = nodes.add_node(num_cpus=1, memory=10**9).node_id
        (folder / "bad").write_text(bad)
        store.register(KEY, plan)
        functions = TrialFunctions(run_trial=run_unless_bad)
        options = {"address": "auto", "max_failures": 15}
        run_trials(plan, work_in(folder, store, options, listener=listener, functions=functions))
        states = Counter(row.state for row in store.trials(KEY))
    report((bad, states, log_lines(folder), listener.notes))


def test_bad_machine_gets_no_more(tmp_path: Path) -> None:
    ((bad, states, machines, notes),) = Process(tmp_path, sweep_with_a_bad_machine, tmp_path).end()
    assert 3 <= states["failed"] <= 5, "one more may have started"
    assert states == {"failed": states["failed"], "done": 16 - states["failed"]}
    assert states["failed"] <= machines.count(bad) <= states["failed"] + 1
    (note,) = (note for note in notes if "no device" in note)
    assert "gets no more trials" in note
