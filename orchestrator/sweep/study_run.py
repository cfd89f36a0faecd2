"""One run of a study, from the plan to the report."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.cluster.run_options import RunOptions
from orchestrator.plan.study_plan import Plan
from orchestrator.store.records import COMPLETE, LOST, PlannedTrial, StudyKey
from orchestrator.sweep.announcement import interrupted, paper_command, retry_command, run_command
from orchestrator.sweep.measuring import print_not_measured
from orchestrator.sweep.remaining_work import Missing
from orchestrator.watch.trial_logs import TrialLogs
from orchestrator.words import on_corpus

if TYPE_CHECKING:
    from orchestrator.plan.tuning.tuner import Tuner
    from orchestrator.report.build import ReportResult
    from orchestrator.storage.storage import Storage
    from orchestrator.store.store import Store
    from orchestrator.watch.sink import Sink
    from search_spaces.study import Study

INTERRUPTED = 130


def run_study(plan: Plan, options: RunOptions, console: Console, *, again: bool = False) -> int:
    """Run what is missing of the plan and report; returns the exit status.

    With `again` (the command `retry`), run those that failed or diverged, and just these.
    """
    from orchestrator.store.opening import open_store

    options.storage.check()
    sinks = _sinks(plan, options, console)
    with open_store(options.store_url, create=not again) as store, _logs(sinks, plan, store, console) as logs:
        tuner = _tuner(plan, store, plans=not again)
        if again:
            known = _members(plan, store)
            reset = _forget(store, [trial.trial_id for trial in known], options)
            if not reset:
                console.print(_nothing_to_retry(plan, store), soft_wrap=True)
                return 0
            trials = [trial for trial in known if trial.trial_id in reset]
        else:
            trials = known = tuner.start() if tuner is not None else _register(plan, store)
        missing = Missing(
            plan, options, store, console, known=known, wanted=trials, tuner=tuner, logs=logs, again=again
        )
        summary = missing.run()
        logs.complete()
        if summary.interrupted:
            done = sum(row.state == "done" for row in store.trials(plan.key))
            console.print(interrupted(done, plan.total), soft_wrap=True)
            return INTERRUPTED
        if again and plan.tuning is not None:
            _go_on_from_here(plan, store, options, console)
        status = report_and_status(store, plan, options, console)
        return max(status, print_not_measured(store.trials(plan.key), summary, console))


def _sinks(plan: Plan, options: RunOptions, console: Console) -> Sequence[Sink]:
    if not options.log_to:
        return ()
    from orchestrator.watch.log_targets import open_sinks

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
    from orchestrator.plan.tuning.tuner import Tuner

    return Tuner(plan.tuning, plan.key, [trial.planned() for trial in plan.trials], store, plans=plans)


def _members(plan: Plan, store: Store) -> list[PlannedTrial]:
    """The study's trials without planning anything: of a tuned one, those that it has come to."""
    if plan.tuning is None:
        return [trial.planned() for trial in plan.trials]
    return [row.planned() for row in store.trials(plan.key)]


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


def _nothing_to_retry(plan: Plan, store: Store) -> str:
    others = [
        f"scale {each.key.scale}{on_corpus(each.key.corpus)}" + ("" if each.key.overrides == "{}" else ", --set")
        for each in store.studies()
        if each.key.study == plan.study.name and each.counts["failed"] + each.counts["diverged"]
    ]
    hint = f" Trials of it failed or diverged at {' and at '.join(others)}: name that one." if others else ""
    return (
        f"No trial of {plan.study.name} at scale {plan.scale.name}{on_corpus(plan.corpus.name)} has failed or "
        f"diverged, so there is nothing to retry; python sweep.py status shows what the store has.{hint}"
    )


def _forget(store: Store, ids: Sequence[str], options: RunOptions) -> list[str]:
    """Plan failed and diverged trials again; a diverged one starts anew, a failed one from its checkpoint."""
    states = store.states(ids)
    lost = [trial_id for trial_id in ids if states.get(trial_id) in LOST]
    for trial_id in lost:
        options.storage.forget(trial_id, checkpoints=states[trial_id] == "diverged")
    return store.reset(lost, states=LOST)


def report_and_status(store: Store, plan: Plan, options: RunOptions, console: Console) -> int:
    """Write the report, print its numbers and its path; 0 where all trials are done, else 1."""
    from orchestrator.report.terminal import summary_group

    command = paper_command(plan.argument, plan.study, plan.key, options.typed)
    result = write_report(
        store, plan.study, plan.key, default_report_folder(options.storage.folder, plan.key), paper_command=command
    )
    console.print(summary_group(result))
    console.print(f"Report: {result.path}", soft_wrap=True)
    console.print(f"All reports: {write_all(result.path, options.storage, console)}", soft_wrap=True)
    rows = store.trials(plan.key)
    lost = [row for row in rows if row.state in LOST]
    for row in lost:
        console.print(f"{row.state}: {row.name}: {row.cause}", soft_wrap=True)
    if lost:
        console.print(f"Run just these again with: {retry_command(options.typed)}", soft_wrap=True)
    return 0 if all(row.state in COMPLETE for row in rows) else 1


def write_all(page: Path, storage: Storage, console: Console) -> Path:
    """Write the page over all reports beside the one at `page`, in an object store too where they lie in one."""
    from orchestrator.report.index import CARD_FILE, write_index

    storage.bring_reports(CARD_FILE)
    index = write_index(page.parent.parent)
    address = storage.publish_report(page, index)
    if address is not None:
        console.print(f"The same report: {address}", soft_wrap=True)
    return index


def default_report_folder(storage: Path, key: StudyKey) -> Path:
    """A folder for each variant of a study, so that none overwrites another."""
    return storage / "reports" / key.variant


def write_report(store: Store, study: Study, key: StudyKey, out: Path, *, paper_command: str | None) -> ReportResult:
    """Build the report of what the store holds for this variant; `paper_command` is what to type for the paper's."""
    from orchestrator.report.build import build_report

    return build_report(
        study,
        key,
        store.results(key),
        spectra=store.spectra(key),
        environments=store.environments(key),
        paper_command=paper_command,
        out=out,
    )
