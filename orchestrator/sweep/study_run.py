"""One run of a study, from the plan to the report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions
from orchestrator.plan import Plan
from orchestrator.store import COMPLETE, LOST, PlannedTrial
from orchestrator.sweep.announcement import interrupted, retry_command, run_command
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.remaining_work import RemainingWork
from orchestrator.sweep.reports import report_folder, write_index, write_report
from orchestrator.sweep.retry import nothing_to_retry, reset_lost, study_members
from orchestrator.watch import TrialLogs

if TYPE_CHECKING:
    from orchestrator.plan import Tuner
    from orchestrator.store import Store
    from orchestrator.watch import Sink

INTERRUPTED = 130


def run_study(plan: Plan, options: RunOptions, console: Console, *, again: bool = False) -> int:
    """Run what is missing of the plan and report; returns the exit status.

    With `again` (the command `retry`), run those that failed or diverged, and just these.
    """
    from orchestrator.store import open_store

    options.storage.check()
    sinks = _sinks(plan, options, console)
    with open_store(options.store_url, create=not again) as store, _logs(sinks, plan, store, console) as logs:
        tuner = _tuner(plan, store, plans=not again)
        if again:
            members = study_members(plan, store)
            reset = reset_lost(members, store, options.storage, lambda: ensure_texts(plan, console))
            if reset is None:
                console.print(nothing_to_retry(plan, store), soft_wrap=True)
                return 0
            trials: Sequence[PlannedTrial] = reset
        else:
            trials = members = tuner.start() if tuner is not None else _register(plan, store)
        summary = RemainingWork(
            plan=plan,
            options=options,
            store=store,
            console=console,
            members=members,
            trials=trials,
            tuner=tuner,
            logs=logs,
            retried=again,
        ).run()
        logs.complete()
        if summary.interrupted:
            done = sum(row.state == "done" for row in store.trials(plan.key))
            console.print(interrupted(done, plan.total), soft_wrap=True)
            return INTERRUPTED
        if again and plan.tuning is not None:
            _go_on_from_here(plan, store, options, console)
        status = _report(store, plan, options, console)
        for row in store.trials(plan.key):
            if row.trial_id in summary.not_measured:
                console.print(f"not measured: {row.name}: {summary.not_measured[row.trial_id]}", soft_wrap=True)
        return max(status, 1 if summary.not_measured else 0)


def _sinks(plan: Plan, options: RunOptions, console: Console) -> Sequence[Sink]:
    if not options.log_to:
        return ()
    from orchestrator.watch import open_sinks

    sinks = open_sinks(options.log_to, plan.key, options.storage.folder)
    for sink in sinks:
        console.print(f"Every trial is logged to {sink.name}, too: {sink.place}", soft_wrap=True)
    return sinks


@contextlib.contextmanager
def _logs(sinks: Sequence[Sink], plan: Plan, store: Store, console: Console) -> Iterator[TrialLogs]:
    logs = TrialLogs(sinks, store, plan.key, lambda text: console.print(text, soft_wrap=True))
    try:
        yield logs
    finally:
        logs.close()


def _register(plan: Plan, store: Store) -> list[PlannedTrial]:
    """Register the trials of a study that tunes nothing. Those that a tuning has stopped early are wanted in full."""
    trials = [trial.planned() for trial in plan.trials]
    store.register(plan.key, trials)
    store.reset([trial.trial_id for trial in trials], states=("pruned",))
    return trials


def _tuner(plan: Plan, store: Store, *, plans: bool) -> Tuner | None:
    if plan.tuning is None:
        return None
    from orchestrator.plan import Tuner

    return Tuner(plan.tuning, plan.key, [trial.planned() for trial in plan.trials], store, plans=plans)


def _go_on_from_here(plan: Plan, store: Store, options: RunOptions, console: Console) -> None:
    """A retried trial may be its side's new best: plan what follows from it, and say how to run that.

    With a smaller budget than the search has had, nothing is planned: that would drop trials from the study.
    """
    tuner = _tuner(plan, store, plans=True)
    assert tuner is not None and plan.tuning is not None, "only a tuning goes on from what its trials come to"
    places = [row.place for row in store.trials(plan.key)]
    if max((place.number or 0 for place in places if place), default=0) <= plan.tuning.budget:
        tuner.start()
    if not tuner.over:
        command = run_command(options.typed)
        console.print(f"The study has more trials to run; run them with: {command}", soft_wrap=True)


def _report(store: Store, plan: Plan, options: RunOptions, console: Console) -> int:
    """Write the report, print its numbers and its path; 0 where all trials are done, else 1."""
    from orchestrator.report import summary_group

    out = report_folder(options.storage, plan.key)
    result = write_report(store, plan.study, plan.key, out, argument=plan.argument, typed=options.typed)
    console.print(summary_group(result))
    console.print(f"Report: {result.path}", soft_wrap=True)
    console.print(f"All reports: {write_index(result.path, options.storage, console)}", soft_wrap=True)
    rows = store.trials(plan.key)
    lost = [row for row in rows if row.state in LOST]
    for row in lost:
        console.print(f"{row.state}: {row.name}: {row.cause}", soft_wrap=True)
    if lost:
        console.print(f"Run just these again with: {retry_command(options.typed)}", soft_wrap=True)
    return 0 if all(row.state in COMPLETE for row in rows) else 1
