"""One run of a study, from the plan to the report."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions
from orchestrator.guard import beat_on
from orchestrator.plan import Plan
from orchestrator.store import COMPLETE, LOST, PlannedTrial, TrialRow
from orchestrator.sweep.commands import RESULTS, Typed, command_line
from orchestrator.sweep.live_reports import live_report
from orchestrator.sweep.remaining_work import RemainingWork
from orchestrator.sweep.reports import report_folder, write_index, write_report
from orchestrator.sweep.retry import retried_trials
from orchestrator.sweep.study_file import write_study_file
from orchestrator.watch import TrialLogs, open_sinks
from orchestrator.words import counted, on_corpus
from trainables.errors import KEPT, PROGRAM

if TYPE_CHECKING:
    from orchestrator.plan import Tuner
    from orchestrator.store import Store

INTERRUPTED = 130
REPORT_NEEDS = ("orchestrator.report.build", "matplotlib.backends.backend_svg")
"""Slow imports, made while the workers start."""


def run_study(
    plan: Plan, options: RunOptions, typed: Typed, console: Console, *, again: bool = False
) -> int:
    """Run the missing trials of the plan and write the report; return the exit status.

    With `again` (the command `retry`), run only failed or diverged trials."""
    from orchestrator.store import open_store

    say = console.print
    options.storage.check()
    sinks = open_sinks(options.log_to, plan.key, options.storage.folder)
    for sink in sinks:
        say(f"Every trial is logged to {sink.name}, too: {sink.place}")
    with (
        open_store(
            options.store_url,
            create=not again,
            on_wait=beat_on,
            on_register=partial(write_study_file, options.storage),
        ) as store,
        contextlib.closing(TrialLogs(sinks, store, plan.key, say)) as logs,
    ):
        tuner, retried = _tuner(plan, store, plans=not again), None
        if again:
            rows = store.trials(plan.key)
            members = [row.planned() for row in rows] if tuner is not None else _certain(plan)
            retried = retried_trials(plan, members, store, options, console)
            if retried is None:
                say(
                    f"No trial of {plan.study.name} at scale "
                    f"{plan.scale.name}{on_corpus(plan.corpus.name)} that this command plans has "
                    f"failed or diverged, so there is nothing to retry; {PROGRAM} status shows "
                    f"what the store has. Type the options of the run, such as --seeds, too."
                )
                return 0
        else:
            members = _register(plan, store, console) if tuner is None else tuner.start()
        threading.Thread(
            target=lambda: list(map(importlib.import_module, REPORT_NEEDS)), daemon=True
        ).start()
        work = RemainingWork(
            plan=plan,
            options=options,
            typed=typed,
            store=store,
            console=console,
            members=members,
            retried=retried,
            tuner=tuner,
            logs=logs,
        )
        with live_report(store, options.store_url, str(options.storage), plan.key, typed):
            summary = work.run()
        logs.complete()
        rows = store.trials(plan.key)
        if summary.interrupted:
            done = sum(row.state == "done" for row in rows)
            say(
                f"Interrupted with {done} of {plan.total} trials done; {KEPT}. Type the same "
                f"command again to go on."
            )
            return INTERRUPTED
        if again and (whole := _tuner(plan, store)) is not None and not whole.over:
            command = command_line(typed.study, options=typed.options)
            say(f"The study has more trials to run; run them with: {command}")
        _report(store, plan, options, typed, console)
        _print_troubles(rows, summary.not_measured, options, typed, console)
        complete = all(row.state in COMPLETE for row in rows)
        return 0 if complete and not summary.not_measured else 1


def _certain(plan: Plan) -> list[PlannedTrial]:
    """Return the trials that depend on no result."""
    return [trial.planned() for trial in plan.trials]


def _register(plan: Plan, store: Store, console: Console) -> list[PlannedTrial]:
    """Register all trials; those that an earlier tuning stopped early are run in full."""
    trials = _certain(plan)
    planned = {trial.trial_id for trial in trials}
    if others := sum(
        row.state == "done" and row.trial_id not in planned for row in store.trials(plan.key)
    ):
        console.print(
            f"Left out of this plan and of its report: {counted(others, 'done trial')} of "
            f"{plan.study.name} with other settings (try --seeds N or --all-trials) or from before "
            f"the study changed. The store keeps them."
        )
    store.register(plan.key, trials)
    store.reset(planned, states=("pruned",))
    return trials


def _tuner(plan: Plan, store: Store, *, plans: bool = True) -> Tuner | None:
    if plan.tuning is None:
        return None
    from orchestrator.plan import Tuner

    return Tuner(plan.tuning, plan.key, _certain(plan), store, plans=plans)


def _report(store: Store, plan: Plan, options: RunOptions, typed: Typed, console: Console) -> None:
    from orchestrator.report import summary_group

    out = report_folder(options.storage, plan.key)
    result = write_report(store, plan.study, plan.key, out, typed=typed)
    console.print(summary_group(result))
    console.print(f"Report: {result.path}")
    console.print(f"All reports: {write_index(result.path, options.storage, console)}")
    view = command_line("view", options=typed.only(*RESULTS))
    console.print(f"Look at its trials with: {view}")


def _print_troubles(
    rows: Sequence[TrialRow],
    not_measured: Mapping[str, str],
    options: RunOptions,
    typed: Typed,
    console: Console,
) -> None:
    lost = [row for row in rows if row.state in LOST]
    for row in lost:
        log = options.storage.trial(row.trial_id).error_log
        traceback = f" (traceback: {log})" if row.state == "failed" and log.is_file() else ""
        console.print(f"{row.state}: {row.name}: {row.cause}{traceback}")
    if lost:
        command = command_line("retry", typed.study, options=typed.options)
        console.print(f"Run just these again with: {command}")
    for row in rows:
        if row.trial_id in not_measured:
            console.print(f"not measured: {row.name}: {not_measured[row.trial_id]}")
