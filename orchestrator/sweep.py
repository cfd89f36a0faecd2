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
from orchestrator.execution import ScheduleOptions
from orchestrator.lease import this_owner
from orchestrator.plan import Plan
from orchestrator.record import recover
from orchestrator.store.records import PlannedTrial, RunRecord, StudyKey, TrialState
from trainables.corpora import OnProgress, ensure
from trainables.environment import code_version, describe, package_versions
from trainables.errors import UserError
from trainables.layer_configs import layer_files
from trainables.runtime import Runtime, trial_directory

if TYPE_CHECKING:
    from orchestrator.report.build import ReportResult
    from orchestrator.store.interface import Store
    from orchestrator.tuning.tuner import Tuner
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
        tuner = _tuner(plan, store, asks=not again)
        if again:
            known = _members(plan, store)
            reset = _forget(store, [trial.trial_id for trial in known], options.storage)
            if not reset:
                console.print(_nothing_to_retry(plan), soft_wrap=True)
                return 0
            trials = [trial for trial in known if trial.trial_id in reset]
        else:
            trials = known = tuner.start() if tuner is not None else _register(plan, store)
        if _run_missing(plan, known, trials, options, store, console, tuner):
            done = sum(row.state == "done" for row in store.trials(plan.key))
            console.print(interrupted(done, plan.total), soft_wrap=True)
            return INTERRUPTED
        return report_and_status(store, plan, options, console)


def _register(plan: Plan, store: Store) -> list[PlannedTrial]:
    """Register the trials of a study that tunes nothing. Those that a tuning has stopped early are wanted in full."""
    trials = [trial.planned() for trial in plan.trials]
    store.register(plan.key, trials)
    store.reset([trial.trial_id for trial in trials], states=("pruned",))
    return trials


def _tuner(plan: Plan, store: Store, *, asks: bool) -> Tuner | None:
    if plan.tuning is None:
        return None
    from orchestrator.tuning.tuner import Tuner

    return Tuner(plan.tuning, plan.key, [trial.planned() for trial in plan.trials], store, asks=asks)


def _members(plan: Plan, store: Store) -> list[PlannedTrial]:
    """The study's trials without planning anything: of a tuned one, those that it has come to."""
    if plan.tuning is None:
        return [trial.planned() for trial in plan.trials]
    rows = store.trials(plan.key)
    return [PlannedTrial(trial_id=row.trial_id, name=row.name, config=row.config) for row in rows]


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
    plan: Plan,
    known: Sequence[PlannedTrial],
    trials: Sequence[PlannedTrial],
    options: RunOptions,
    store: Store,
    console: Console,
    tuner: Tuner | None,
) -> bool:
    """Run those of `trials` that have not ended, and what `tuner` gives after them; returns whether that was
    interrupted. `known` are all trials of the study that are known so far."""

    def current() -> tuple[dict[str, TrialState], list[PlannedTrial], int]:
        """State by trial, those of `trials` to run, and how many will be, with those that the tuner has yet to name."""
        states = store.states([trial.trial_id for trial in known])
        missing = [trial for trial in trials if states.get(trial.trial_id) in OPEN]
        unnamed = plan.total - len(known) if tuner is not None and not tuner.over else 0
        return states, missing, len(missing) + unnamed

    states, missing, count = current()
    if not count:
        console.print(opening(plan, 0, states, (0.0, ""), options), soft_wrap=True)
        return False
    run_id = store.begin_run(_run_record(plan, options))
    try:
        searched = (lambda trial: False) if tuner is None else tuner.is_searched  # noqa: ARG005
        recovered = recover(store, options.storage, missing, run_id, note=console.print, may_be_pruned=searched)
        if recovered:
            console.print(f"Recorded {recovered} results that an earlier run had left as files.")
            states, missing, count = current()
        seconds_each = _seconds_per_trial(plan, store, gpu=options.gpus_per_trial > 0)
        console.print(opening(plan, count, states, seconds_each, options), soft_wrap=True)
        return count > 0 and _schedule(plan, missing, count, options, store, run_id, seconds_each[0], console, tuner)
    finally:
        store.end_run(run_id)


def _schedule(
    plan: Plan,
    missing: Sequence[PlannedTrial],
    count: int,
    options: RunOptions,
    store: Store,
    run_id: int,
    seconds_per_trial: float,
    console: Console,
    tuner: Tuner | None,
) -> bool:
    _ensure_corpus(plan, console)
    # Ray takes seconds to import; without trials to run nothing needs it.
    from orchestrator.schedule import run_trials

    gpu = options.gpus_per_trial > 0
    schedule = ScheduleOptions(
        storage=options.storage,
        runtime=Runtime(
            data_dir=plan.data_dir,
            device="cuda" if gpu else "cpu",
            threads=options.cores_per_trial,
            deterministic=options.deterministic,
            layer_files=layer_files(trial.config.output_layer for trial in plan.trials),
        ),
        measurements=plan.study.measurements,
        seconds_per_trial=seconds_per_trial,
        address=options.address,
        gpus_per_trial=options.gpus_per_trial,
        max_concurrent=options.max_concurrent,
    )
    with watching(console, count) as listener:
        summary = run_trials(
            missing,
            store=store,
            run_id=run_id,
            owner=this_owner(),
            options=schedule,
            listener=listener,
            source=tuner,
        )
    return summary.interrupted


def _run_record(plan: Plan, options: RunOptions) -> RunRecord:
    about = describe("cpu", threads=1)
    return RunRecord(
        code_version=code_version(),
        packages=package_versions(),
        host=about["host"],
        device=f"{options.gpus_per_trial:g} GPUs a trial" if options.gpus_per_trial else about["hardware"],
        corpus_sha256=plan.corpus.sha256,
    )


def _seconds_per_trial(plan: Plan, store: Store, *, gpu: bool) -> tuple[float, str]:
    """Mean time of a trial and where that is known from: trials of this plan that are done, else operations."""
    times = [row["metrics"]["wall_seconds"] for row in store.results(plan.key) if "wall_seconds" in row["metrics"]]
    if times:
        return sum(times) / len(times), f"the mean of {len(times)} done"
    hours = [t.estimate.gpu_hours if gpu else t.estimate.core_hours for t in plan.trials]
    basis = "from the published times on a V100" if gpu else "from the number of operations"
    return 3600 * sum(hours) / len(hours), basis


def _ensure_corpus(plan: Plan, console: Console) -> None:
    if plan.corpus.name != "pydocs":
        ensure(plan.corpus.name, data_dir=plan.data_dir, on_progress=download_lines(console))


def download_lines(console: Console) -> OnProgress:
    """A download's progress as a line for each tenth of a file."""
    shown: dict[str, int] = {}

    def show(file: str, done: int, total: int) -> None:
        tenth = 10 * done // max(1, total)
        if shown.get(file) != tenth:
            shown[file] = tenth
            console.print(f"{file}: {done / 1e6:.1f} of {total / 1e6:.1f} MB")

    return show


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
    from orchestrator.report.terminal import summary_group

    command = paper_command(plan.argument, plan.study, plan.key, options.typed)
    result = write_report(
        store, plan.study, plan.key, default_report_folder(options.storage, plan.key), paper_command=command
    )
    console.print(summary_group(result.summary))
    console.print(f"Report: {result.path}", soft_wrap=True)
    rows = store.trials(plan.key)
    lost = [row for row in rows if row.state in LOST]
    for row in lost:
        console.print(f"{row.state}: {row.name}: {row.cause}", soft_wrap=True)
    if lost:
        console.print(f"Run just these again with: {retry_command(options.typed)}", soft_wrap=True)
    return 0 if all(row.state in ("done", "pruned") for row in rows) else 1


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
