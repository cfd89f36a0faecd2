"""The commands that train: `run` and `retry`."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from orchestrator.command.options import (
    STORAGE,
    Address,
    Benchmarks,
    Budget,
    Contexts,
    Cores,
    Corpus,
    DataDir,
    Deterministic,
    Format,
    Gpus,
    LogTo,
    MaxConcurrent,
    Scale,
    Search,
    Settings,
    Storage,
    StoreUrl,
    StudyArgument,
    console,
    placed,
    store_url,
)
from orchestrator.storage.data_folder import data_folder
from search_spaces import catalog
from trainables.errors import UserError
from trainables.runtime import Runtime

if TYPE_CHECKING:
    from orchestrator.cluster.run_options import RunOptions
    from orchestrator.plan.study_plan import Plan

BAD_INPUT = 2


def run(
    context: typer.Context,
    study: StudyArgument,
    scale: Scale = "quick",
    corpus: Corpus = None,
    data_dir: DataDir = None,
    store: StoreUrl = None,
    storage: Storage = STORAGE,
    address: Address = None,
    gpus_per_trial: Gpus = None,
    cores_per_trial: Cores = 1,
    max_concurrent: MaxConcurrent = None,
    deterministic: Deterministic = False,
    contexts: Contexts = None,
    benchmarks: Benchmarks = None,
    search: Search = None,
    budget: Budget = None,
    log_to: LogTo = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False,
    form: Format = "table",
    settings: Settings = None,
) -> None:
    """Run what is missing of a study and report. `run` itself may be left away: sweep.py STUDY."""
    if form != "table" and not dry_run:
        raise UserError(
            f"--format {form} is for --dry-run; the results of a run are shown by: sweep.py results {study}"
        )
    data_here, data = data_folder(data_dir, corpus or [])
    plans = _plans(
        study,
        scale,
        corpus,
        data_dir=data_here,
        settings=settings,
        contexts=contexts,
        benchmarks=benchmarks,
        search=search,
        budget=budget,
    )
    gpus = [_gpus(gpus_per_trial, plan) for plan in plans]
    if dry_run:
        from orchestrator.command.plan_listing import print_plans

        # The other formats are for programs: they get the plan alone.
        measured = _measured(plans, store_url(store, storage), gpus) if form == "table" else []
        print_plans(plans, form, console(), measured=measured)
        return
    options = _options(
        context,
        store,
        storage,
        data=data,
        address=address,
        runtime=Runtime(threads=cores_per_trial, deterministic=deterministic),
        max_concurrent=max_concurrent,
        log_to=tuple(log_to or ()),
    )
    _run_all(plans, options, gpus, again=False)


def _plans(
    study: str,
    scale: str,
    corpora: list[str] | None,
    *,
    data_dir: Path | None,
    settings: list[str] | None,
    contexts: Path | None,
    benchmarks: Path | None,
    search: str | None,
    budget: int | None,
) -> list[Plan]:
    from orchestrator.plan.overrides import parse_overrides
    from orchestrator.plan.study_plan import default_corpora, make_plan, scale_named
    from orchestrator.plan.user_inputs import read_own
    from search_spaces.catalog import load_study

    if data_dir is not None and not data_dir.is_dir():
        raise UserError(
            f"--data-dir takes a folder that exists, and {data_dir} is none: name the one where the corpora lie, or "
            "leave it away and they are fetched to data"
        )
    size, overrides = scale_named(scale), parse_overrides(settings or [])
    own = read_own(contexts, benchmarks)
    everything = study == catalog.ALL
    plans = []
    for argument in catalog.NAMES if everything else (study,):
        chosen = load_study(argument)
        asked = corpora if chosen.reads_text or not everything else None
        names = dict.fromkeys(asked or default_corpora(chosen, size))
        # Of all studies, those that tune nothing have no use for how to search, nor others for inputs to measure.
        tuned = chosen.tuning is not None or not everything
        plans += [
            make_plan(
                chosen,
                size,
                name,
                data_dir,
                overrides,
                argument=argument,
                own=own.for_study(chosen) if everything else own,
                search=search if tuned else None,
                budget=budget if tuned else None,
            )
            for name in names
        ]
    return plans


def _measured(plans: Sequence[Plan], store_url: str, gpus: Sequence[float]) -> list[str]:
    """What trials done so far say about the time of those to run; nothing where there is no store yet."""
    from orchestrator.plan.pace import remaining
    from orchestrator.store.opening import open_store

    try:
        opened = open_store(store_url, create=False)
    except UserError:  # a plan needs no store
        return []
    with opened:
        sentences = []
        for gpu in (True, False):
            alike = [plan for plan, each in zip(plans, gpus, strict=True) if (each > 0) == gpu]
            sentences += remaining(alike, opened, gpu=gpu)
        return sentences


def _gpus(asked: float | None, plan: Plan) -> float:
    """GPUs of a trial: as asked, else one where models are trained at the scales that are meant for GPUs."""
    if asked is None:
        return 1.0 if plan.scale.name in ("small", "paper") and plan.study.reads_text else 0.0
    from orchestrator.cluster.resources import check_gpus

    check_gpus(asked)
    return asked


def _options(context: typer.Context, store: str | None, storage: str, **resources: Any) -> RunOptions:
    """`resources`: the other fields of RunOptions, as given."""
    from orchestrator.cluster.run_options import RunOptions

    url = store_url(store, storage)
    folder, mirror = placed(storage)
    return RunOptions(storage=folder, mirror=mirror, store_url=url, typed=tuple(context.obj), **resources)


def _run_all(plans: Sequence[Plan], options: RunOptions, gpus: Sequence[float], *, again: bool) -> None:
    """`gpus`: of a trial of each plan."""
    from orchestrator.cluster.shared import shared
    from orchestrator.sweep.study_run import INTERRUPTED, run_study

    # What `docker stop` and batch systems send ends a run as Ctrl-C does.
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    statuses = []
    with shared():
        for plan, gpus_of_trial in zip(plans, gpus, strict=True):
            try:
                statuses.append(run_study(plan, _for_study(options, plan, gpus_of_trial), console(), again=again))
            except UserError as error:
                if len(plans) == 1:
                    raise
                # Others may need nothing of what is amiss with this one.
                console(stderr=True).print(f"error: {plan.study.name}: {error}", soft_wrap=True)
                statuses.append(BAD_INPUT)
            if statuses[-1] == INTERRUPTED:
                break
    raise typer.Exit(max(statuses))


def _for_study(options: RunOptions, plan: Plan, gpus_per_trial: float) -> RunOptions:
    """The options with what the study decides."""
    from trainables.config.kinds import output_layer_of
    from trainables.config.output_layer import layer_files

    runtime = replace(
        options.runtime,
        data_dir=plan.data_dir,
        device="cuda" if gpus_per_trial > 0 else "cpu",
        layer_files=layer_files(filter(None, (output_layer_of(trial.config) for trial in plan.trials))),
        benchmarks_dir=plan.benchmarks_dir,
        contexts=plan.own.contexts,
        benchmarks=plan.own.benchmarks,
    )
    return replace(options, gpus_per_trial=gpus_per_trial, runtime=runtime)


def _as_ctrl_c(number: int, frame: object) -> None:  # noqa: ARG001  (the signature of a signal handler)
    raise KeyboardInterrupt


def retry(
    context: typer.Context,
    study: StudyArgument,
    scale: Scale = "quick",
    corpus: Corpus = None,
    data_dir: DataDir = None,
    store: StoreUrl = None,
    storage: Storage = STORAGE,
    address: Address = None,
    gpus_per_trial: Gpus = None,
    cores_per_trial: Cores = 1,
    max_concurrent: MaxConcurrent = None,
    deterministic: Deterministic = False,
    contexts: Contexts = None,
    benchmarks: Benchmarks = None,
    search: Search = None,
    budget: Budget = None,
    log_to: LogTo = None,
    settings: Settings = None,
) -> None:
    """Run just those trials of a study again that failed or diverged."""
    data_here, data = data_folder(data_dir, corpus or [])
    plans = _plans(
        study,
        scale,
        corpus,
        data_dir=data_here,
        settings=settings,
        contexts=contexts,
        benchmarks=benchmarks,
        search=search,
        budget=budget,
    )
    options = _options(
        context,
        store,
        storage,
        data=data,
        address=address,
        runtime=Runtime(threads=cores_per_trial, deterministic=deterministic),
        max_concurrent=max_concurrent,
        log_to=tuple(log_to or ()),
    )
    _run_all(plans, options, [_gpus(gpus_per_trial, plan) for plan in plans], again=True)
