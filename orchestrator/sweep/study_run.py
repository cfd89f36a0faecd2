"""One run of a study, from the plan to the report."""

from __future__ import annotations

import contextlib
import importlib
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster import RunOptions, check_torch_gpu
from orchestrator.guard import was_started_again
from orchestrator.plan import Plan
from orchestrator.store import COMPLETE, LOST, OPEN, PlannedTrial
from orchestrator.sweep.commands import Typed, command_line, view_command
from orchestrator.sweep.corpus_files import ensure_texts
from orchestrator.sweep.remaining_work import RemainingWork
from orchestrator.sweep.reports import report_folder, write_index, write_report
from orchestrator.variants import Variant
from orchestrator.watch import TrialLogs, open_sinks
from orchestrator.words import counted, on_corpus
from trainables.errors import KEPT, PROGRAM

if TYPE_CHECKING:
    from orchestrator.plan import Tuner
    from orchestrator.storage import Storage
    from orchestrator.store import Store, StudyKey

INTERRUPTED = 130
REPORT_NEEDS = ("orchestrator.report.build", "scipy.stats", "matplotlib.backends.backend_svg")
"""A second of imports: made while the workers start, they are not waited for at the end."""


def run_study(
    plan: Plan, options: RunOptions, typed: Typed, console: Console, *, again: bool = False
) -> int:
    """Run what is missing of the plan and report; returns the exit status.

    With `again` (the command `retry`), run those that failed or diverged, and just these.
    """
    from orchestrator.store import open_store

    say = console.print
    options.storage.check()
    sinks = open_sinks(options.log_to, plan.key, options.storage.folder)
    for sink in sinks:
        say(f"Every trial is logged to {sink.name}, too: {sink.place}")
    with (
        open_store(options.store_url, create=not again) as store,
        contextlib.closing(TrialLogs(sinks, store, plan.key, say)) as logs,
    ):
        tuner = _tuner(plan, store, plans=not again)
        members: Sequence[PlannedTrial]
        retried = None
        if again:
            members = (
                _certain(plan)
                if tuner is None
                else [row.planned() for row in store.trials(plan.key)]
            )
            if was_started_again():
                retried = _still_open(members, store, plan.key)
            else:
                retried = _reset_lost(
                    members, store, options.storage, lambda: _what_waits(plan, options, console)
                )
            if retried is None:
                say(_nothing_to_retry(plan, store))
                return 0
        else:
            _put_right(plan, options.store_url, say)
            if options.takes_own_gpu and _is_left_to_train(plan, store, options.storage):
                check_torch_gpu(trial.config for trial in plan.trials)
            members = tuner.start() if tuner is not None else _register(plan, store, say)
        threading.Thread(
            target=lambda: list(map(importlib.import_module, REPORT_NEEDS)), daemon=True
        ).start()
        summary = RemainingWork(
            plan=plan,
            options=options,
            typed=typed,
            store=store,
            console=console,
            members=members,
            retried=retried,
            tuner=tuner,
            logs=logs,
        ).run()
        logs.complete()
        if summary.interrupted:
            done = sum(row.state == "done" for row in store.trials(plan.key))
            say(
                f"Interrupted with {done} of {plan.total} trials done; {KEPT}. Type the same "
                f"command again to go on."
            )
            return INTERRUPTED
        if again and plan.tuning is not None:
            _go_on_from_here(plan, store, typed, console)
        status = _report(store, plan, options, typed, console)
        for row in store.trials(plan.key):
            if row.trial_id in summary.not_measured:
                say(f"not measured: {row.name}: {summary.not_measured[row.trial_id]}")
        return max(status, 1 if summary.not_measured else 0)


def _put_right(plan: Plan, store_url: str, say: Callable[[str], None]) -> None:
    """Have damaged rows planned again, before others are planned by them; their result files are
    recorded as those that an earlier run left."""
    from orchestrator.store import repair_for

    first, *others = repair_for(store_url, plan.key, [trial.trial_id for trial in plan.trials]) or [
        ""
    ]
    if first:
        more = f" So it is with {counted(len(others), 'other')}." if others else ""
        say(f"The results store is damaged, and put right where this study reads it. {first}{more}")


def _is_left_to_train(plan: Plan, store: Store, storage: Storage) -> bool:
    """Whether a trial that is known yet has no result, neither in the store nor as a file."""
    trial_ids = [trial.trial_id for trial in plan.trials]
    states = store.states(trial_ids)
    left = [trial_id for trial_id in trial_ids if states.get(trial_id, "planned") in OPEN]
    storage.bring(left)
    return any(storage.trial(trial_id).outcome() is None for trial_id in left)


def _what_waits(plan: Plan, options: RunOptions, console: Console) -> frozenset[str]:
    """Before a retry forgets anything: trials whose text cannot be had. Raises UserError where a
    GPU is missing."""
    if options.takes_own_gpu:
        check_torch_gpu(trial.config for trial in plan.trials)
    return ensure_texts(plan, console)


def _certain(plan: Plan) -> list[PlannedTrial]:
    """The trials that are known without any result."""
    return [trial.planned() for trial in plan.trials]


def _register(plan: Plan, store: Store, say: Callable[[str], None]) -> list[PlannedTrial]:
    """Register the trials of a study that tunes nothing. Those that a tuning has stopped early are
    wanted in full."""
    trials = _certain(plan)
    planned = {trial.trial_id for trial in trials}
    if others := sum(
        row.state == "done" and row.trial_id not in planned for row in store.trials(plan.key)
    ):
        say(
            f"Left out of this plan and of its report: {counted(others, 'done trial')} of "
            f"{plan.study.name} with other "
            "settings (try --seeds N or --all-trials) or from before the study changed. The store "
            "keeps them."
        )
    store.register(plan.key, trials)
    store.reset([trial.trial_id for trial in trials], states=("pruned",))
    return trials


def _tuner(plan: Plan, store: Store, *, plans: bool) -> Tuner | None:
    if plan.tuning is None:
        return None
    from orchestrator.plan import Tuner

    return Tuner(plan.tuning, plan.key, _certain(plan), store, plans=plans)


def _reset_lost(
    members: Sequence[PlannedTrial],
    store: Store,
    storage: Storage,
    waiting: Callable[[], frozenset[str]],
) -> list[PlannedTrial] | None:
    """Plan failed and diverged trials again: a diverged one from its beginning, a failed one from
    its checkpoint.

    Before anything is forgotten, `waiting` says which of them cannot run now; they stay as they
    are. None where no trial has failed or diverged."""
    states = store.states([trial.trial_id for trial in members])
    lost = [trial.trial_id for trial in members if states.get(trial.trial_id) in LOST]
    if not lost:
        return None
    without_text = waiting()
    lost = [trial_id for trial_id in lost if trial_id not in without_text]
    for trial_id in lost:
        storage.forget(trial_id, checkpoints=states[trial_id] == "diverged")
    reset = set(store.reset(lost, states=LOST))
    return [trial for trial in members if trial.trial_id in reset]


def _still_open(members: Sequence[PlannedTrial], store: Store, key: StudyKey) -> list[PlannedTrial]:
    """What a `retry` whose process died had planned again, and has not brought to an end."""
    begun = {row.trial_id for row in store.trials(key) if row.attempt > 0 and row.state in OPEN}
    return [trial for trial in members if trial.trial_id in begun]


def _nothing_to_retry(plan: Plan, store: Store) -> str:
    """That there is no such trial here, and where there are some."""
    keys = [
        summary.key
        for summary in store.studies()
        if summary.key.study == plan.study.name
        and summary.counts["failed"] + summary.counts["diverged"]
    ]
    variants = [
        ", ".join([f"scale {key.scale}{on_corpus(key.corpus)}", *Variant.read(key.overrides).typed])
        for key in keys
        if key != plan.key
    ]
    hint = (
        f" Trials of it failed or diverged at {' and at '.join(variants)}: name that one."
        if variants
        else ""
    )
    if plan.key in keys:
        hint += (
            " Trials of it did that this command does not plan: type the --seeds that they were "
            "run with, or, where "
            "the study has changed since, run it again."
        )
    return (
        f"No trial of {plan.study.name} at scale {plan.scale.name}{on_corpus(plan.corpus.name)} "
        f"has failed or "
        f"diverged, so there is nothing to retry; {PROGRAM} status shows what the store has.{hint}"
    )


def _go_on_from_here(plan: Plan, store: Store, typed: Typed, console: Console) -> None:
    """A retried trial may be its side's new best: plan what follows from it, and say how to run
    that.

    With a smaller budget than the search has had, nothing is planned: that would drop trials from
    the study."""
    tuner = _tuner(plan, store, plans=True)
    assert tuner is not None and plan.tuning is not None, (
        "only a tuning goes on from what its trials come to"
    )
    places = [row.place for row in store.trials(plan.key)]
    if max((place.number or 0 for place in places if place), default=0) <= plan.tuning.budget:
        tuner.start()
    if not tuner.over:
        command = command_line(typed.study, options=typed.options)
        console.print(f"The study has more trials to run; run them with: {command}")


def _report(store: Store, plan: Plan, options: RunOptions, typed: Typed, console: Console) -> int:
    """Write the report, print its numbers and its path; 0 where all trials are done, else 1."""
    from orchestrator.report import summary_group

    say = console.print
    out = report_folder(options.storage, plan.key)
    result = write_report(store, plan.study, plan.key, out, typed=typed)
    console.print(summary_group(result))
    say(f"Report: {result.path}")
    say(f"All reports: {write_index(result.path, options.storage, console)}")
    say(f"Look at its trials with: {view_command(typed)}")
    rows = store.trials(plan.key)
    lost = [row for row in rows if row.state in LOST]
    for row in lost:
        log = options.storage.trial(row.trial_id).error_log
        traceback = f" (traceback: {log})" if row.state == "failed" and log.is_file() else ""
        say(f"{row.state}: {row.name}: {row.cause}{traceback}")
    if lost:
        say(
            f"Run just these again with: {command_line('retry', typed.study, options=typed.options)}"
        )
    return 0 if all(row.state in COMPLETE for row in rows) else 1
