"""One run of a study, from the plan to the report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

from orchestrator.display import duration, watching
from orchestrator.plan import Plan
from orchestrator.store.records import RunRecord, StudyKey, TrialState
from trainables.environment import code_version, describe, package_versions
from trainables.errors import UserError
from trainables.runtime import Runtime, trial_directory

if TYPE_CHECKING:
    from orchestrator.execution import RunSummary
    from orchestrator.report.build import ReportResult
    from orchestrator.store.interface import Store
    from search_spaces.study import Study

INTERRUPTED = 130


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where results go and what may be used to get them."""

    storage: Path
    """Absolute."""
    store_url: str
    address: str | None = None
    gpus_per_trial: float = 0.0
    cores_per_trial: int = 1
    max_concurrent: int | None = None


def run_study(plan: Plan, options: RunOptions, console: Console, *, only: Sequence[TrialState] = ()) -> int:
    """Run what is missing of the plan and report; returns the exit status.

    `only` names the final states whose trials are run again (`retry`); without it these are left as they are.
    """
    from orchestrator.store.opening import open_store

    make_storage(options.storage)
    with open_store(options.store_url) as store:
        ids = [trial.trial_id for trial in plan.trials]
        store.register(plan.key, [trial.planned() for trial in plan.trials])
        if only:
            _forget(store, ids, only, options.storage)
        summary = _run_missing(plan, options, store, console)
        if summary is not None and summary.interrupted:
            return _say_how_to_go_on(plan, store, console)
        return report_and_status(store, plan.study, plan.key, options.storage, console)


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


def _run_missing(plan: Plan, options: RunOptions, store: Store, console: Console) -> RunSummary | None:
    from orchestrator.record import recover

    trials = [trial.planned() for trial in plan.trials]
    states = store.states([trial.trial_id for trial in trials])
    missing = [trial for trial in trials if states[trial.trial_id] in ("planned", "running")]
    run_id = None
    if missing:
        run_id = store.begin_run(_run_record(plan, options))
        recovered = recover(store, options.storage, missing, run_id, note=console.print)
        if recovered:
            states = store.states([trial.trial_id for trial in trials])
            missing = [trial for trial in missing if states[trial.trial_id] in ("planned", "running")]
            console.print(f"Recorded {recovered} results that an earlier run had left as files.", highlight=False)
    seconds_each = _seconds_per_trial(plan, store, gpu=options.gpus_per_trial > 0)
    console.print(_opening(plan, len(missing), states, seconds_each, options), highlight=False, soft_wrap=True)
    summary = None
    if missing and run_id is not None:
        _ensure_corpus(plan, console)
        # Ray takes seconds to import; without trials to run nothing needs it.
        from orchestrator.execution import ScheduleOptions
        from orchestrator.lease import this_owner
        from orchestrator.schedule import run_trials

        schedule = ScheduleOptions(
            storage=options.storage,
            runtime=Runtime(
                data_dir=plan.data_dir,
                device="cuda" if options.gpus_per_trial > 0 else "cpu",
                threads=options.cores_per_trial,
            ),
            measurements=plan.study.measurements,
            seconds_per_trial=seconds_each[0],
            address=options.address,
            gpus_per_trial=options.gpus_per_trial,
            max_concurrent=options.max_concurrent,
        )
        with watching(console, len(missing)) as listener:
            summary = run_trials(
                missing, store=store, run_id=run_id, owner=this_owner(), options=schedule, listener=listener
            )
    if run_id is not None:
        store.end_run(run_id)
    return summary


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


def _opening(
    plan: Plan,
    missing: int,
    states: Mapping[str, TrialState],
    seconds_each: tuple[float, str],
    options: RunOptions,
) -> str:
    """What will run, in the run's first lines."""
    total = len(plan.trials)
    done = sum(state == "done" for state in states.values())
    others = total - done - missing
    troubled = f", {others} without a result" if others else ""
    lines = [
        f"Study {plan.study.name}: {plan.study.title or plan.study.question}".rstrip(": "),
        f"Scale {plan.scale.name} ({plan.scale.summary}), corpus {plan.corpus.name}"
        + (f", with {plan.key.overrides}" if plan.key.overrides != "{}" else ""),
        f"{total} trials: {missing} to run, {done} already done{troubled}.",
    ]
    if missing:
        unit = "GPU" if options.gpus_per_trial else "core"
        workers = _workers(options)
        estimate = duration(missing * seconds_each[0] / max(1, workers))
        each = f"{duration(seconds_each[0])} a trial and {unit}, {seconds_each[1]}"
        lines.append(f"Estimated time: about {estimate} on {workers} {unit}{'s' * (workers > 1)} ({each}).")
    if plan.scale.name != "paper":
        corpora = " or ".join(plan.study.corpora) or plan.corpus.name
        first = (plan.study.corpora or (plan.corpus.name,))[0]
        lines.append(
            f"This is not the paper's scale; for that, type: python sweep.py {plan.study.name} --scale paper "
            f"--corpus {first}" + (f" ({corpora})" if len(plan.study.corpora) > 1 else "")
        )
    return "\n".join(lines)


def _workers(options: RunOptions) -> int:
    """How many trials run at a time, as far as it is known before Ray has started."""
    if options.gpus_per_trial:
        return options.max_concurrent or 1
    fitting = max(1, len(os.sched_getaffinity(0)) // options.cores_per_trial)
    return min(options.max_concurrent or fitting, fitting)


def _ensure_corpus(plan: Plan, console: Console) -> None:
    from trainables.corpora import ensure

    if plan.corpus.name != "pydocs":
        ensure(plan.corpus.name, data_dir=plan.data_dir, on_progress=download_lines(console))


def download_lines(console: Console):  # type: ignore[no-untyped-def]
    """A download's progress as a line for each tenth of a file."""
    shown: dict[str, int] = {}

    def show(file: str, done: int, total: int) -> None:
        tenth = 10 * done // max(1, total)
        if shown.get(file) != tenth:
            shown[file] = tenth
            console.print(f"{file}: {done / 1e6:.1f} of {total / 1e6:.1f} MB", highlight=False)

    return show


def _forget(store: Store, ids: Sequence[str], states: Sequence[TrialState], storage: Path) -> None:
    """Plan failed and diverged trials again; a diverged one starts anew, a failed one from its checkpoint."""
    before = store.states(ids)
    for trial_id in store.reset(ids, states=states):
        folder = trial_directory(storage, trial_id)
        old = [folder / "result.json"]
        if before[trial_id] == "diverged":
            old += folder.glob("checkpoint-*.safetensors")
        for path in old:
            path.unlink(missing_ok=True)


def _say_how_to_go_on(plan: Plan, store: Store, console: Console) -> int:
    states = store.states([trial.trial_id for trial in plan.trials])
    done = sum(state == "done" for state in states.values())
    console.print(
        f"Interrupted with {done} of {len(plan.trials)} trials done; what was done is kept. "
        "Type the same command again to go on.",
        highlight=False,
        soft_wrap=True,
    )
    return INTERRUPTED


def report_and_status(store: Store, study: Study, key: StudyKey, storage: Path, console: Console) -> int:
    """Write the report, print its numbers and its path; 0 where all trials are done, else 1."""
    result = write_report(store, study, key, default_report_folder(storage, key))
    from orchestrator.report.terminal import summary_group

    console.print(summary_group(result.summary))
    console.print(f"Report: {result.path}", highlight=False, soft_wrap=True)
    rows = store.trials(key)
    lost = [row for row in rows if row.state in ("failed", "diverged")]
    for row in lost:
        console.print(f"{row.state}: {row.name}: {row.cause}", markup=False, highlight=False, soft_wrap=True)
    if lost:
        console.print(f"Run just these again with: python sweep.py retry {key.study}", highlight=False, soft_wrap=True)
    return 0 if all(row.state == "done" for row in rows) else 1


def default_report_folder(storage: Path, key: StudyKey) -> Path:
    """A folder for each variant of a study, so that none overwrites another."""
    name = f"{key.study}-{key.scale}-{key.corpus}"
    if key.overrides != "{}":
        import hashlib

        name += "-" + hashlib.sha256(key.overrides.encode()).hexdigest()[:8]
    return storage / "reports" / name


def write_report(store: Store, study: Study, key: StudyKey, out: Path) -> ReportResult:
    """Build the report of what the store holds for this variant."""
    from orchestrator.report.build import build_report

    rows = store.results(key)
    done = [row["trial_id"] for row in rows if row["state"] == "done"]
    spectra = {trial_id: values for trial_id in done if (values := store.spectrum(trial_id)) is not None}
    environment = store.environment(done[0]) if done else describe("cpu", threads=1)
    return build_report(study, key, rows, spectra=spectra, environment=environment, out=out)
