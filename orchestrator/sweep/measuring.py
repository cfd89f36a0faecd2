"""Measurements that done trials of a study lack: found again as files, or taken now, without training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster.run_options import RunOptions
from orchestrator.plan.study_plan import Plan
from orchestrator.schedule.recording import Recorder
from orchestrator.schedule.study_work import RunSummary, StudyWork
from orchestrator.store.records import PlannedTrial, TrialRow
from orchestrator.watch.terminal import watching
from orchestrator.words import counted

if TYPE_CHECKING:
    from orchestrator.store.store import Store


def recover_all(
    plan: Plan,
    missing: Sequence[PlannedTrial],
    lacking: Mapping[str, Sequence[str]],
    store: Store,
    recorder: Recorder,
    console: Console,
    *,
    may_be_pruned: Callable[[PlannedTrial], bool],
) -> int:
    """Record what an earlier run left as files: results of missing trials, measurements that done ones lack."""
    results = recorder.recover(missing, note=console.print, may_be_pruned=may_be_pruned)
    if results:
        console.print(f"Recorded {counted(results, 'result')} that an earlier run had left as files.")
        lacking = {**lacking, **store.lacking(plan.key, plan.measurements)}
    # One that cannot be recorded is measured again, and its trouble said then.
    later, _ = recorder.measurements(lacking)
    if later:
        console.print(f"Recorded {counted(later, 'measurement')} that an earlier run had left as files.")
    return results + later


def measure_later(
    plan: Plan, options: RunOptions, work: StudyWork, store: Store, run_id: int, console: Console
) -> RunSummary:
    """Take the measurements that done trials of the plan lack by now, from the weights that they kept."""
    lacking = store.lacking(plan.key, plan.measurements)
    if not lacking:
        return RunSummary()
    # Ray takes seconds to import; without trials to measure nothing needs it.
    from orchestrator.schedule.trials_run import run_trials

    trials = [row.planned() for row in store.trials(plan.key) if row.trial_id in lacking]
    work = replace(work, lacking=lacking)
    with watching(console, len(lacking), doing="measuring") as listener:
        return run_trials(trials, store=store, run_id=run_id, options=options, work=work, listener=listener)


def print_not_measured(trials: Sequence[TrialRow], summary: RunSummary, console: Console) -> int:
    """Name the trials that could not be measured, each with its cause; 1 where there are some, else 0."""
    for trial in trials:
        if trial.trial_id in summary.not_measured:
            console.print(f"not measured: {trial.name}: {summary.not_measured[trial.trial_id]}", soft_wrap=True)
    return 1 if summary.not_measured else 0
