"""The commands that train: `run`, `retry`, `compare`, `command`, `work` and `slurm`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Context, Exit, Option

from orchestrator.command import options
from orchestrator.command.clean import removed_sentence
from orchestrator.command.compare import Question, print_answer, sides_plan
from orchestrator.command.options import console, print_err, store_url
from search_spaces.catalog import ALL
from search_spaces.command_study import DEFINING, command_words, define, redefine
from search_spaces.scales import SCALES
from trainables.errors import PROGRAM, UserError
from trainables.runtime import Runtime

if TYPE_CHECKING:
    from orchestrator.cluster import RunOptions
    from orchestrator.plan import Plan
    from orchestrator.sweep import Typed

BAD_INPUT = 2


def scale_names(start: str) -> list[str]:
    """Return the scales of built-in studies that start with `start`."""
    return [name for name in SCALES if name.startswith(start)]


def run(
    context: Context,
    study: options.StudyArgument,
    scale: Annotated[
        str | None,
        Option(
            autocompletion=scale_names,
            help="Size of the run: smoke (seconds), quick, small, paper, or a scale of your own "
            "study. [default: quick, or full for your own code]",
        ),
    ] = None,
    corpus: Annotated[
        list[str] | None,
        Option(
            help="Text: pydocs, markov, markov-R (rank R), spam-V (V symbols), ptb, wikitext-2 or "
            "a folder. May be repeated. [default: by scale]"
        ),
    ] = None,
    data_dir: options.DataDir = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    address: Annotated[
        str | None, Option(help="Address of a running Ray cluster. [default: start Ray]")
    ] = None,
    ray_dashboard: Annotated[
        bool,
        Option("--ray-dashboard", help="Also start Ray's dashboard, which takes a few seconds."),
    ] = False,
    gpus_per_trial: Annotated[
        float | None,
        Option(
            help="GPUs per trial, 0 to 1. [default: 0; 1 for language models at scale small or "
            "paper]"
        ),
    ] = None,
    cores_per_trial: Annotated[int, Option(min=1, help="CPU threads of each trial.")] = 1,
    max_concurrent: Annotated[
        int | None,
        Option(min=1, help="Maximum number of trials at a time. [default: as many as fit]"),
    ] = None,
    max_failures: Annotated[
        int | None,
        Option(
            min=1,
            help="Stop after this number of failed trials. [default: if the first ten all fail]",
        ),
    ] = None,
    trial_timeout: Annotated[
        int | None,
        Option(
            min=10,
            metavar="SECONDS",
            help="End a trial after this time without progress. [default: ten times the longest "
            "training step, at least 2 min; 10 min for other work]",
        ),
    ] = None,
    deterministic: Annotated[
        bool,
        Option("--deterministic", help="Make results on a GPU repeatable bit for bit (slower)."),
    ] = False,
    contexts: Annotated[
        Path | None,
        Option(
            metavar="FILE",
            help="Your own contexts for top_k@1, as a JSON list: see docs/measurements.md.",
        ),
    ] = None,
    benchmarks: Annotated[
        Path | None,
        Option(metavar="DIR", help="Folder of your own benchmarks (*.txt) for word_similarity@1."),
    ] = None,
    search: Annotated[
        Literal["tpe", "random", "grid"] | None,
        Option(help="Search method of a tuned study. [default: tpe]"),
    ] = None,
    budget: Annotated[
        int | None, Option(help="Number of search trials per tuned model. [default: by scale]")
    ] = None,
    model: Annotated[
        options.ModelName | None,
        Option(
            help="Train this model instead of the study's; keep corpus, output layers and seeds."
        ),
    ] = None,
    seeds: Annotated[
        int | None,
        Option(
            help="Seeds per setting, done seeds included; at most 1,000. [default: set by the "
            "study]"
        ),
    ] = None,
    all_trials: Annotated[
        bool,
        Option("--all-trials", help="Also run the trials that --scale leaves out."),
    ] = False,
    log_to: Annotated[
        list[str] | None,
        Option(
            metavar="LOG",
            help="Also log to mlflow, mlflow=URI or tensorboard. May be repeated. See "
            "docs/watching.md",
        ),
    ] = None,
    keep_weights: Annotated[
        Literal["all", "best", "none"],
        Option(
            help="Weights that stay when the study is done: those of all trials, those of the "
            "setting with the best mean of the study's metric, or none."
        ),
    ] = "all",
    dry_run: Annotated[
        bool,
        Option("--dry-run", help="Print the plan and its costs, and run nothing."),
    ] = False,
    form: Annotated[
        Literal["table", "csv", "json", "jsonl"],
        Option(
            "--format",
            help="Output format of --dry-run; jsonl prints one JSON object per event of the run.",
        ),
    ] = "table",
    settings: Annotated[
        list[str] | None,
        Option(
            "--set",
            metavar="KEY=VALUE[,VALUE...]",
            help="Set a value in every trial's config, e.g. training.epochs=3. With several "
            "values, e.g. training.learning_rate=0.01,0.02, each trial runs once per value. May be "
            "repeated.",
        ),
    ] = None,
    retry: Annotated[
        bool, Option("--retry", help="Run only failed and diverged trials again.")
    ] = False,
    **others: Any,
) -> None:
    """Run the missing trials of a study, then write its report.

    The word `run` may be omitted. Run the same command again to resume.
    """
    from orchestrator.plan import PlanRequest, make_plan, studies_of
    from orchestrator.sweep import command_line, stored_command
    from orchestrator.variants import parse_settings, read_inputs

    is_command_line, is_comparison = (context.info_name == name for name in ("command", "compare"))
    if form in ("csv", "json") and not dry_run:
        raise UserError(
            f"--format {form}: needs --dry-run. Print the results of a run with: {PROGRAM} results "
            f"{'STUDY' if is_command_line else study}"
        )
    folder = options.text_folder(data_dir)
    if folder is not None and not folder.is_dir():
        raise UserError(
            f"--data-dir: no such folder: {folder}. Name the folder of the corpora, or leave "
            f"the option out to download them to data."
        )
    request = PlanRequest(
        data_dir=folder,
        settings=parse_settings(settings or []),
        inputs=read_inputs(contexts, benchmarks),
        search=search,
        budget=budget,
        model=model,
        seeds=seeds,
        all_trials=all_trials,
    )
    is_retry = retry or context.info_name == "retry"
    all_options = options.typed_options(context)
    added_options = () if is_comparison else [f"--{name}" for name in others]
    hidden_options = DEFINING if is_command_line else added_options
    typed_options = {k: v for k, v in all_options.items() if k not in hidden_options}
    if is_command_line:
        study, request = define(study, all_options), PlanRequest(data_dir=folder)
    elif (definition := stored_command(study, storage)) and is_comparison:
        study = redefine(definition)
    elif definition:
        line = command_line(*command_words(definition, again=is_retry), options=typed_options)
        raise UserError(f"{study}: is a command. Type: {line}")
    studies = studies_of(study, scale, corpus, request)
    if is_comparison:
        question = Question(**others, seeds=seeds)
        plans = [sides_plan(studies, question)]
    else:
        plans = [make_plan(*chosen) for chosen in studies]
    gpus = [_gpus_of(gpus_per_trial, plan) for plan in plans]
    if dry_run:
        from orchestrator.command.plan_listing import print_plans

        if form == "jsonl":
            raise UserError("--format jsonl: --dry-run has no events. Use --format json.")
        print_plans(plans, form, on_gpu=any(gpus))
        return
    from orchestrator.cluster import RunOptions
    from orchestrator.storage import storage_at
    from orchestrator.sweep import JobArray, Typed, check_workers_can, submit, worker_name

    is_worker, is_job_array = context.info_name == "work", context.info_name == "slurm"
    run_options = RunOptions(
        store_url="" if is_worker or is_job_array else store_url(store, storage),
        storage=storage_at(storage),
        address=address,
        ray_dashboard=ray_dashboard,
        max_concurrent=max_concurrent,
        max_failures=max_failures,
        trial_timeout_s=trial_timeout,
        log_to=tuple(log_to or ()),
        keep_weights=keep_weights,
        runtime=Runtime(
            threads=cores_per_trial,
            deterministic=deterministic,
            worker=worker_name() if is_worker else "",
        ),
    )
    runs = [
        (
            plan,
            _study_options(run_options, plan, number),
            Typed(study=plan.study.name if study == ALL else study, options=typed_options),
        )
        for plan, number in zip(plans, gpus, strict=True)
    ]
    if is_comparison:
        raise Exit(print_answer(*runs[0], question, again=is_retry))
    if is_job_array:
        if others["script"] is not None and len(runs) > 1:
            raise UserError("--script: a script is for one study and corpus. Name one of each.")
        for each_run in runs:
            check_workers_can(*each_run)
        for each_run in runs:
            submit(*each_run, JobArray(**others), console())
        return
    raise Exit(_run_all(runs, again=is_retry, as_events=form == "jsonl"))


def _gpus_of(gpus_per_trial: float | None, plan: Plan) -> float:
    if gpus_per_trial is None:
        return 1.0 if plan.scale.name in ("small", "paper") and plan.study.reads_text else 0.0
    from orchestrator.cluster import check_gpus

    check_gpus(gpus_per_trial)
    return gpus_per_trial


def _study_options(run_options: RunOptions, plan: Plan, gpus_per_trial: float) -> RunOptions:
    from trainables.config import code_of

    runtime = replace(
        run_options.runtime,
        data_dir=plan.data_dir,
        device="cuda" if gpus_per_trial > 0 else "cpu",
        code=code_of(trial.validated for trial in plan.trials),
        goal=plan.study.goal,
        benchmarks_dir=plan.benchmarks_dir,
        contexts=plan.inputs.contexts,
        benchmarks=plan.inputs.benchmarks,
    )
    return replace(run_options, gpus_per_trial=gpus_per_trial, runtime=runtime)


def _run_all(
    runs: Sequence[tuple[Plan, RunOptions, Typed]], *, again: bool, as_events: bool
) -> int:
    from orchestrator.cluster import shared
    from orchestrator.guard import remove_leftovers
    from orchestrator.sweep import INTERRUPTED, run_study, work_on_study
    from orchestrator.watch import JsonLines, Listener

    if count := remove_leftovers():
        print_err(removed_sentence(count))
    statuses, terminal = [], console(stderr=as_events)
    with shared():
        for plan, study_options, typed in runs:
            events = JsonLines(plan.key) if as_events else Listener()
            try:
                statuses.append(
                    work_on_study(plan, study_options, typed, terminal, events)
                    if study_options.runtime.worker
                    else run_study(plan, study_options, typed, terminal, events, again=again)
                )
            except UserError as error:
                # The fault may not concern the other studies.
                print_err(f"error: {f'{plan.study.name}: ' if len(runs) > 1 else ''}{error}")
                statuses.append(BAD_INPUT)
            events.event("study_ended", {"exit_status": statuses[-1]})
            if statuses[-1] == INTERRUPTED:
                break
    return max(statuses)
