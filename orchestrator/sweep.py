"""One run of a study, from the plan to the report."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.announce import RunOptions, interrupted, opening, paper_command, retry_command
from orchestrator.display import watching
from orchestrator.execution import LaterSummary, ScheduleOptions
from orchestrator.later import measure_later, print_not_measured, recover_all
from orchestrator.lease import this_owner
from orchestrator.measured_times import expected_seconds, timings
from orchestrator.plan import Plan
from orchestrator.store.records import PlannedTrial, RunRecord, StudyKey, TrialState
from orchestrator.texts import ensure_texts
from trainables.environment import code_version, describe, package_versions
from trainables.errors import UserError
from trainables.layer_configs import layer_files
from trainables.runtime import Runtime, trial_directory

if TYPE_CHECKING:
    from orchestrator.report.build import ReportResult
    from orchestrator.store.interface import Store
    from search_spaces.study import Study

OPEN: tuple[TrialState, ...] = ("planned", "running")
LOST: tuple[TrialState, ...] = ("failed", "diverged")
INTERRUPTED = 130


def run_study(plan: Plan, options: RunOptions, console: Console, *, again: bool = False) -> int:
    """Run what is missing of the plan and report; returns the exit status.

    With `again` (the command `retry`), run those that failed or diverged, and just these.
    """
    from orchestrator.store.opening import open_store

    make_storage(options.storage)
    with open_store(options.store_url, create=not again) as store:
        trials = [trial.planned() for trial in plan.trials]
        if again:
            reset = _forget(store, [trial.trial_id for trial in trials], options.storage)
            if not reset:
                console.print(_nothing_to_retry(plan), soft_wrap=True)
                return 0
            trials = [trial for trial in trials if trial.trial_id in reset]
        else:
            store.register(plan.key, trials)
        summary = _run_missing(plan, trials, options, store, console, again=again)
        if summary.interrupted:
            done = sum(row.state == "done" for row in store.trials(plan.key))
            console.print(interrupted(done, len(plan.trials)), soft_wrap=True)
            return INTERRUPTED
        status = report_and_status(store, plan, options, console)
        return max(status, print_not_measured(plan, summary, console))


def _nothing_to_retry(plan: Plan) -> str:
    return (
        f"No trial of {plan.study.name} at scale {plan.scale.name}, corpus {plan.corpus.name}, has failed or diverged, "
        "so there is nothing to retry; python sweep.py status shows what the store has."
    )


def make_storage(storage: Path) -> None:
    """Make the storage folder. Raises UserError where that cannot be."""
    try:
        storage.mkdir(parents=True, exist_ok=True)
        probe = storage / f".writable-{os.getpid()}"
        probe.write_bytes(b"x")
        probe.unlink()
    except OSError as error:
        raise UserError(
            f"results need a folder that can be written to, but {storage} cannot ({error.strerror}); "
            "free space there or name another one with --storage"
        ) from error


def _run_missing(
    plan: Plan, trials: Sequence[PlannedTrial], options: RunOptions, store: Store, console: Console, *, again: bool
) -> LaterSummary:
    """Run those of `trials` that are not done, then take the measurements that done trials lack, unless `again`."""
    states = store.states([trial.trial_id for trial in plan.trials])
    missing = [trial for trial in trials if states[trial.trial_id] in OPEN]
    lacking = {} if again else store.lacking(plan.key, plan.measurements)
    if not missing and not lacking:
        console.print(opening(plan, 0, states, {}, (0.0, ""), options), soft_wrap=True)
        return LaterSummary()
    run_id = store.begin_run(_run_record(plan, options))
    try:
        if recover_all(plan, missing, lacking, options.storage, store, run_id, console):
            states = store.states([trial.trial_id for trial in plan.trials])
            missing = [trial for trial in missing if states[trial.trial_id] in OPEN]
            lacking = {} if again else store.lacking(plan.key, plan.measurements)
        seconds_each = _seconds_per_trial(plan, missing, store, gpu=options.gpus_per_trial > 0)
        console.print(opening(plan, len(missing), states, lacking, seconds_each, options), soft_wrap=True)
        if not missing and not lacking:
            return LaterSummary()
        ensure_texts(plan, console)
        schedule = _schedule_options(plan, options, seconds_each[0])
        if missing and _schedule(missing, schedule, store, run_id, console):
            return LaterSummary(interrupted=True)
        return LaterSummary() if again else measure_later(plan, schedule, store, run_id, console)
    finally:
        store.end_run(run_id)


def _schedule(
    missing: Sequence[PlannedTrial], schedule: ScheduleOptions, store: Store, run_id: int, console: Console
) -> bool:
    """Run the trials; returns whether that was interrupted."""
    # Ray takes seconds to import; without trials to run nothing needs it.
    from orchestrator.schedule import run_trials

    with watching(console, len(missing)) as listener:
        summary = run_trials(
            missing, store=store, run_id=run_id, owner=this_owner(), options=schedule, listener=listener
        )
    return summary.interrupted


def _schedule_options(plan: Plan, options: RunOptions, seconds_per_trial: float) -> ScheduleOptions:
    return ScheduleOptions(
        storage=options.storage,
        runtime=Runtime(
            data_dir=plan.data_dir,
            device="cuda" if options.gpus_per_trial > 0 else "cpu",
            threads=options.cores_per_trial,
            deterministic=options.deterministic,
            layer_files=layer_files(trial.config.output_layer for trial in plan.trials),
            benchmarks_dir=plan.benchmarks_dir,
            contexts=plan.own.contexts,
            benchmarks=plan.own.benchmarks,
        ),
        measurements=plan.measurements,
        seconds_per_trial=seconds_per_trial,
        address=options.address,
        gpus_per_trial=options.gpus_per_trial,
        max_concurrent=options.max_concurrent,
    )


def _run_record(plan: Plan, options: RunOptions) -> RunRecord:
    about = describe("cpu", threads=1)
    return RunRecord(
        code_version=code_version(),
        packages=package_versions(),
        host=about["host"],
        device=f"{options.gpus_per_trial:g} GPUs a trial" if options.gpus_per_trial else about["hardware"],
        corpus_sha256=plan.corpus.sha256,
    )


def _seconds_per_trial(plan: Plan, missing: Sequence[PlannedTrial], store: Store, *, gpu: bool) -> tuple[float, str]:
    """Mean time of the trials to run, and where that is known from."""
    key = plan.key
    known = timings(store, scale=key.scale, corpus=key.corpus, overrides=key.overrides, gpu=gpu)
    wanted = {trial.trial_id for trial in missing}
    others = [trial.trial_id for trial in plan.trials if trial.trial_id not in wanted]
    expected, basis = expected_seconds(plan.trials, known, others, gpu=gpu)
    return sum(expected.values()) / max(1, len(expected)), basis


def _forget(store: Store, ids: Sequence[str], storage: Path) -> list[str]:
    """Plan failed and diverged trials again; a diverged one starts anew, a failed one from its checkpoint."""
    states = store.states(ids)
    lost = [trial_id for trial_id in ids if states.get(trial_id) in LOST]
    for trial_id in lost:
        folder = trial_directory(storage, trial_id)
        old = [folder / "result.json"]
        if states[trial_id] == "diverged":
            old += folder.glob("checkpoint-*.safetensors")
        for path in old:
            # The folder itself may be what made the trial fail.
            with contextlib.suppress(NotADirectoryError):
                path.unlink(missing_ok=True)
    return store.reset(lost, states=LOST)


def report_and_status(store: Store, plan: Plan, options: RunOptions, console: Console) -> int:
    """Write the report, print its numbers and its path; 0 where all trials are done, else 1."""
    from orchestrator.report.index import write_index
    from orchestrator.report.terminal import summary_group

    command = paper_command(plan.argument, plan.study, plan.key, options.typed)
    result = write_report(
        store, plan.study, plan.key, default_report_folder(options.storage, plan.key), paper_command=command
    )
    console.print(summary_group(result.summary))
    console.print(f"Report: {result.path}", soft_wrap=True)
    console.print(f"All reports: {write_index(result.path.parent.parent)}", soft_wrap=True)
    rows = store.trials(plan.key)
    lost = [row for row in rows if row.state in LOST]
    for row in lost:
        console.print(f"{row.state}: {row.name}: {row.cause}", soft_wrap=True)
    if lost:
        console.print(f"Run just these again with: {retry_command(options.typed)}", soft_wrap=True)
    return 0 if all(row.state == "done" for row in rows) else 1


def default_report_folder(storage: Path, key: StudyKey) -> Path:
    """A folder for each variant of a study, so that none overwrites another."""
    name = f"{key.study}-{key.scale}-{key.corpus}"
    if key.overrides != "{}":
        name += "-" + hashlib.sha256(key.overrides.encode()).hexdigest()[:8]
    return storage / "reports" / name


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
