"""The commands that train: `run`, and `retry` for what it could not bring to a result."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import console, store_url
from orchestrator.command.plans import gpus_of, measured_times, plans_of, text_folder
from trainables.errors import UserError
from trainables.runtime import Runtime

if TYPE_CHECKING:
    from orchestrator.cluster import RunOptions
    from orchestrator.plan import Plan

BAD_INPUT = 2


def run(
    context: typer.Context,
    study: options.StudyArgument,
    scale: options.Scale = "quick",
    corpus: options.Corpus = None,
    data_dir: options.DataDir = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    address: options.Address = None,
    gpus_per_trial: options.Gpus = None,
    cores_per_trial: options.Cores = 1,
    max_concurrent: options.MaxConcurrent = None,
    deterministic: options.Deterministic = False,
    contexts: options.Contexts = None,
    benchmarks: options.Benchmarks = None,
    search: options.Search = None,
    budget: options.Budget = None,
    log_to: options.LogTo = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False,
    form: options.Format = "table",
    settings: options.Settings = None,
) -> None:
    """Run what is missing of a study and report. `run` itself may be left away: sweep.py STUDY."""
    from orchestrator.plan import PlanRequest, parse_overrides, read_inputs

    retried = context.info_name == "retry"
    if retried and (dry_run or form != "table"):
        raise UserError("--dry-run and --format are for run; what failed or diverged is shown by: sweep.py status")
    if form != "table" and not dry_run:
        raise UserError(
            f"--format {form} is for --dry-run; the results of a run are shown by: sweep.py results {study}"
        )
    folder, data = text_folder(data_dir, corpus or [], dry_run=dry_run)
    request = PlanRequest(
        data_dir=folder,
        overrides=parse_overrides(settings or []),
        inputs=read_inputs(contexts, benchmarks),
        search=search,
        budget=budget,
    )
    plans = plans_of(study, scale, corpus, request)
    gpus = [gpus_of(gpus_per_trial, plan) for plan in plans]
    if dry_run:
        from orchestrator.command.plan_listing import print_plans

        # The other formats are for programs: they get the plan alone.
        measured = measured_times(plans, store_url(store, storage), gpus) if form == "table" else []
        print_plans(plans, form, measured=measured)
        return
    from orchestrator.cluster import RunOptions
    from orchestrator.storage import storage_at

    url = store_url(store, storage)
    run_options = RunOptions(
        storage=storage_at(storage),
        store_url=url,
        data=data,
        address=address,
        runtime=Runtime(threads=cores_per_trial, deterministic=deterministic),
        max_concurrent=max_concurrent,
        log_to=tuple(log_to or ()),
        typed=tuple(context.obj),
    )
    runs = [(plan, _for_study(run_options, plan, number)) for plan, number in zip(plans, gpus, strict=True)]
    raise typer.Exit(_run_all(runs, again=retried))


def _for_study(run_options: RunOptions, plan: Plan, gpus_per_trial: float) -> RunOptions:
    """The options with what the study decides."""
    from trainables.config import layer_files, output_layer_of

    runtime = replace(
        run_options.runtime,
        data_dir=plan.data_dir,
        device="cuda" if gpus_per_trial > 0 else "cpu",
        layer_files=layer_files(filter(None, (output_layer_of(trial.config) for trial in plan.trials))),
        benchmarks_dir=plan.benchmarks_dir,
        contexts=plan.inputs.contexts,
        benchmarks=plan.inputs.benchmarks,
    )
    return replace(run_options, gpus_per_trial=gpus_per_trial, runtime=runtime)


def _run_all(runs: Sequence[tuple[Plan, RunOptions]], *, again: bool) -> int:
    """One study after another, until one is interrupted; returns the greatest exit status."""
    from orchestrator.cluster import shared
    from orchestrator.sweep import INTERRUPTED, run_study

    # What `docker stop` and batch systems send ends a run as Ctrl-C does.
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    statuses = []
    with shared():
        for plan, study_options in runs:
            try:
                statuses.append(run_study(plan, study_options, console(), again=again))
            except UserError as error:
                if len(runs) == 1:
                    raise
                # Others may need nothing of what is amiss with this one.
                console(stderr=True).print(f"error: {plan.study.name}: {error}", soft_wrap=True)
                statuses.append(BAD_INPUT)
            if statuses[-1] == INTERRUPTED:
                break
    return max(statuses)


def _as_ctrl_c(number: int, frame: object) -> None:  # noqa: ARG001  (the signature of a signal handler)
    raise KeyboardInterrupt
