"""Run a study, from the plan to the report."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions
from orchestrator.guard import beat_on
from orchestrator.plan import Plan
from orchestrator.store import COMPLETE, LostTrial, PlannedTrial, by_cause, group_text
from orchestrator.sweep.commands import RESULTS, Typed, command_line
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.live_reports import live_report
from orchestrator.sweep.remaining_work import RemainingWork
from orchestrator.sweep.reports import report_folder, write_index, write_report
from orchestrator.sweep.retention import remove_weights
from orchestrator.sweep.retry import retried_trials
from orchestrator.sweep.shared_work import INTERRUPTED, gather
from orchestrator.sweep.study_file import check_name, write_study_file
from orchestrator.watch import Listener, TrialLogs, open_sinks
from orchestrator.words import counted, on_corpus
from search_spaces.command_study import command_words
from trainables.errors import DIVERGED, GO_ON, PROGRAM

if TYPE_CHECKING:
    from orchestrator.plan import Tuner
    from orchestrator.store import Store

# Slow imports, made while the workers start.
REPORT_MODULES = ("orchestrator.report.build", "matplotlib.backends.backend_svg")


def run_study(
    plan: Plan,
    options: RunOptions,
    typed: Typed,
    console: Console,
    events: Listener,
    *,
    again: bool = False,
    adds: bool = False,
) -> int:
    """Run the missing trials of the plan and write the report; return the exit status.

    `again` (the command `retry`) runs only failed or diverged trials. `adds` (the command
    `compare`) keeps the study's other trials, and writes no report.
    """
    from orchestrator.store import open_store

    print_line = console.print
    options.storage.check()
    check_name(options.storage, plan.key, typed.source)
    sinks = open_sinks(options.log_to, plan.key, options.storage.folder)
    for sink in sinks:
        print_line(f"Trials are also logged to {sink.name}: {sink.address}")
    with (
        open_store(
            options.store_url,
            create=not again,
            on_wait=beat_on,
            on_register=partial(write_study_file, options.storage, file=typed.source),
        ) as store,
        contextlib.closing(TrialLogs(sinks, store, plan.key, print_line)) as logs,
    ):
        gather(store, options.storage, print_line)
        tuner, retries = _tuner(plan, store, plans=not again), None
        members: Sequence[PlannedTrial]
        if again:
            members = plan.trials if tuner is None else store.trials(plan.key)
            retries = retried_trials(plan, members, store, options, console)
            if retries is None:
                print_line(
                    f"There is nothing to retry: no trial of {plan.study.name} at scale "
                    f"{plan.scale.name}{on_corpus(plan.corpus.name)} has failed or diverged. Use "
                    f"the earlier run's options, such as --seeds. `{PROGRAM} status` shows results."
                )
                return 0
        else:
            if not store.trials(plan.key):  # a failed download leaves no empty study
                ensure_texts(plan, Console(quiet=True))
            if adds:
                _add(plan, store)
                members = plan.trials
            else:
                members = _register(plan, store, console) if tuner is None else tuner.start()
        threading.Thread(
            target=lambda: list(map(importlib.import_module, REPORT_MODULES)), daemon=True
        ).start()
        work = RemainingWork(
            plan=plan,
            options=options,
            typed=typed,
            store=store,
            console=console,
            members=members,
            retries=retries,
            tuner=tuner,
            logs=logs,
            events=events,
        )
        with live_report(store, options.store_url, str(options.storage), plan.key, typed):
            summary = work.run()
        logs.complete()
        rows = store.trials(plan.key)
        if summary.interrupted:
            done_count = sum(row.state == "done" for row in rows)
            total = max(plan.total, len(rows))  # `compare` adds to a study with more trials
            print_line(f"Interrupted with {done_count} of {total} trials done: {GO_ON}")
            return INTERRUPTED
        if again and (full_tuner := _tuner(plan, store)) is not None and not full_tuner.over:
            command = command_line(*command_words(typed.study), options=typed.options)
            print_line(f"The study has more trials. Run them with: {command}")
        if adds:
            _add(plan, store)  # a run of the study, at the same time, may have left them out
            return 0
        is_complete = all(row.state in COMPLETE for row in rows)
        if is_complete and not summary.measurement_failures and options.keep_weights != "all":
            remove_weights(store, plan, options, print_line)
        _report(store, plan, options, typed, console, events)
        lost_trials = [trial for trial in store.lost() if trial.key == plan.key]
        _print_failures(lost_trials, options, typed, console)
        for row in rows:
            if row.trial_id in summary.measurement_failures:
                failure = summary.measurement_failures[row.trial_id]
                print_line(f"not measured: {row.name}: {failure}")
        return 0 if is_complete and not summary.measurement_failures else 1


def _register(plan: Plan, store: Store, console: Console) -> list[PlannedTrial]:
    trials = list(plan.trials)
    planned_ids = {trial.trial_id for trial in trials}
    if other_count := sum(
        row.state == "done" and row.trial_id not in planned_ids for row in store.trials(plan.key)
    ):
        console.print(
            f"This plan and report omit {counted(other_count, 'done trial')} of "
            f"{plan.study.name}: they have other settings (try --seeds N or --all-trials), "
            f"`compare` added them, or {'their code' if plan.study.is_own else 'the study'} has "
            "changed since. The store keeps them."
        )
    store.register(plan.key, trials)
    # Trials that an earlier tuning stopped early are run in full.
    store.reset(planned_ids, states=("pruned",))
    return trials


def _add(plan: Plan, store: Store) -> None:
    while True:
        rows = store.trials(plan.key)
        ids = [row.trial_id for row in rows]
        new = [trial for trial in plan.trials if trial.trial_id not in ids]
        if not new or store.register(plan.key, [*rows, *new], instead_of=ids):
            break
    store.reset([trial.trial_id for trial in plan.trials], states=("pruned",))


def _tuner(plan: Plan, store: Store, *, plans: bool = True) -> Tuner | None:
    if plan.tuning is None:
        return None
    from orchestrator.plan import Tuner

    return Tuner(plan.tuning, plan.key, plan.trials, store, plans=plans)


def _report(
    store: Store, plan: Plan, options: RunOptions, typed: Typed, console: Console, events: Listener
) -> None:
    from orchestrator.report import summary_group

    out = report_folder(options.storage, plan.key)
    result = write_report(store, plan.study, plan.key, out, typed=typed)
    console.print(summary_group(result))
    console.print(f"Report: {result.path}")
    console.print(f"All reports: {write_index(result.path, options.storage, console)}")
    view = command_line("view", options=typed.select(*RESULTS))
    console.print(f"View the trials with: {view}")
    events.event("report_written", {"page": result.path})


def _print_failures(
    lost_trials: Sequence[LostTrial], options: RunOptions, typed: Typed, console: Console
) -> None:
    for group in by_cause(lost_trials):
        log = options.storage.trial(group[0].trial_id).error_log
        has_log = group[0].state == "failed" and log.is_file()
        console.print(group_text(group) + (f"\n  (traceback: {log})" if has_log else ""))
    states = {trial.state for trial in lost_trials}
    if "failed" in states:
        words = command_words(typed.study, again=True)
        command = command_line(*words, options=typed.options)
        console.print(f"Run failed trials again with: {command}")
    if "diverged" in states:
        console.print(DIVERGED)
