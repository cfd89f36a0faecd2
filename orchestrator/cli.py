"""The command line: options in, exit status out. What the commands do stands in `sweep` and `listing`."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from typer.core import TyperGroup

from orchestrator.options import (
    Address,
    AnyCorpus,
    AnyScale,
    AnySettings,
    Benchmarks,
    Budget,
    Contexts,
    Cores,
    Corpus,
    DataDir,
    Deterministic,
    Format,
    Gpus,
    MaxConcurrent,
    Scale,
    Search,
    Settings,
    Storage,
    StoreUrl,
    StudyArgument,
)
from search_spaces import catalog
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.announce import RunOptions
    from orchestrator.listing import Wanted
    from orchestrator.plan import Plan

HELP = """Sweeps of recurrent language models, and what their numbers mean.

`python sweep.py STUDY` plans the trials of a study, runs those that are missing, and reports. Typed again, it goes on.
"""


class _Interruptible(TyperGroup):
    """Ctrl-C outside a running sweep: a sentence and exit status 130, where the framework would say "Aborted" and 1."""

    def invoke(self, ctx: Any) -> object:
        """Run the command that was typed."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            _console(stderr=True).print("Interrupted; what was done is kept. Type the same command again to go on.")
            raise typer.Exit(130) from error


app = typer.Typer(
    cls=_Interruptible,
    help=HELP,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,
)
corpus_app = typer.Typer(help="Get corpora and verify them.", no_args_is_help=True)
store_app = typer.Typer(help="Keep the results store in order.", no_args_is_help=True)
app.add_typer(corpus_app, name="corpus")
app.add_typer(store_app, name="store")

COMMANDS = ("run", *catalog.COMMANDS)
STORAGE = Path("results")


def _console(*, stderr: bool = False) -> Console:
    # Without a terminal, lines are as long as they are: a log file has no width.
    wide = None if (sys.stderr if stderr else sys.stdout).isatty() else 200
    # What users name things is text, brackets and all.
    return Console(stderr=stderr, width=wide, markup=False, highlight=False)


def _store_url(store: str | None, storage: Path) -> str:
    return store or os.fspath(storage.resolve() / "results.db")


@app.command("run")
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
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and run nothing.")] = False,
    form: Format = "table",
    settings: Settings = None,
) -> None:
    """Run what is missing of a study and report. `run` itself may be left away: sweep.py STUDY."""
    if form != "table" and not dry_run:
        raise UserError(
            f"--format {form} is for --dry-run; the results of a run are shown by: sweep.py results {study}"
        )
    plans = _plans(
        study,
        scale,
        corpus,
        data_dir=data_dir,
        settings=settings,
        contexts=contexts,
        benchmarks=benchmarks,
        search=search,
        budget=budget,
    )
    if dry_run:
        from orchestrator.plan_listing import print_plans

        # The other formats are for programs: they get the plan alone.
        gpu = _gpus(gpus_per_trial, scale) > 0
        measured = _measured(plans, _store_url(store, storage), gpu=gpu) if form == "table" else []
        print_plans(plans, form, _console(), measured=measured)
        return
    options = _options(
        context,
        store,
        storage,
        address=address,
        gpus_per_trial=_gpus(gpus_per_trial, scale),
        cores_per_trial=cores_per_trial,
        max_concurrent=max_concurrent,
        deterministic=deterministic,
    )
    _run_all(plans, options, again=False)


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
    from orchestrator.overrides import parse_overrides
    from orchestrator.own_inputs import read_own
    from orchestrator.plan import default_corpora, make_plan, scale_named
    from search_spaces.catalog import load_study

    size, overrides = scale_named(scale), parse_overrides(settings or [])
    own = read_own(contexts, benchmarks)
    plans = []
    for argument in catalog.NAMES if study == catalog.ALL else (study,):
        chosen = load_study(argument)
        names = dict.fromkeys(corpora or default_corpora(chosen, size))
        # Of all studies, those that tune nothing have no use for how to search.
        tuned = chosen.tuning is not None or study != catalog.ALL
        plans += [
            make_plan(
                chosen,
                size,
                name,
                data_dir,
                overrides,
                argument=argument,
                own=own,
                search=search if tuned else None,
                budget=budget if tuned else None,
            )
            for name in names
        ]
    return plans


def _measured(plans: Sequence[Plan], store_url: str, *, gpu: bool) -> list[str]:
    """What trials done so far say about the time of those to run; nothing where there is no store yet."""
    from orchestrator.measured_times import remaining
    from orchestrator.store.opening import open_store

    try:
        opened = open_store(store_url, create=False)
    except UserError:  # a plan needs no store
        return []
    with opened:
        return remaining(plans, opened, gpu=gpu)


def _gpus(asked: float | None, scale: str) -> float:
    return asked if asked is not None else 1.0 if scale in ("small", "paper") else 0.0


def _options(context: typer.Context, store: str | None, storage: Path, **resources: Any) -> RunOptions:
    """`resources`: the other fields of RunOptions, as given."""
    from orchestrator.announce import RunOptions

    return RunOptions(
        storage=storage.resolve(), store_url=_store_url(store, storage), typed=tuple(context.obj), **resources
    )


def _run_all(plans: Sequence[Plan], options: RunOptions, *, again: bool) -> None:
    from orchestrator.shared_cluster import shared
    from orchestrator.sweep import INTERRUPTED, run_study

    # What `docker stop` and batch systems send ends a run as Ctrl-C does.
    signal.signal(signal.SIGTERM, _as_ctrl_c)
    statuses = []
    with shared():
        for plan in plans:
            statuses.append(run_study(plan, options, _console(), again=again))
            if statuses[-1] == INTERRUPTED:
                break
    raise typer.Exit(max(statuses))


def _as_ctrl_c(number: int, frame: object) -> None:  # noqa: ARG001  (the signature of a signal handler)
    raise KeyboardInterrupt


def _wanted(scale: str | None, corpus: str | None, settings: list[str] | None) -> Wanted:
    from orchestrator.listing import Wanted
    from orchestrator.overrides import overrides_json, parse_overrides

    overrides = overrides_json(parse_overrides(settings)) if settings else None
    # A folder's path names its corpus here as it does in a run.
    return Wanted(scale=scale, corpus=corpus and Path(corpus).name, overrides=overrides)


@app.command("studies")
def studies(form: Format = "table") -> None:
    """List the studies, what each reproduces and how many trials it has at paper scale."""
    from orchestrator.listing import print_studies

    print_studies(form, _console())


@app.command("status")
def status(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="Only this study.")] = None,
    store: StoreUrl = None,
    storage: Storage = STORAGE,
    form: Format = "table",
) -> None:
    """Show how far each study has come."""
    from orchestrator.listing import print_status

    print_status(study, _store_url(store, storage), form, _console())


@app.command("results")
def results(
    study: StudyArgument,
    scale: AnyScale = None,
    corpus: AnyCorpus = None,
    settings: AnySettings = None,
    store: StoreUrl = None,
    storage: Storage = STORAGE,
    form: Annotated[str, typer.Option("--format", help="table, csv, json or parquet.")] = "table",
) -> None:
    """Print all trials of a study with their configs and metrics."""
    from orchestrator.listing import print_results

    print_results(study, _wanted(scale, corpus, settings), _store_url(store, storage), form)


@app.command("report")
def report(
    context: typer.Context,
    study: StudyArgument,
    scale: AnyScale = None,
    corpus: AnyCorpus = None,
    settings: AnySettings = None,
    store: StoreUrl = None,
    storage: Storage = STORAGE,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to write to.")] = None,
) -> None:
    """Write the report of what the store holds, trials missing or not."""
    from orchestrator.announce import paper_command
    from orchestrator.listing import choose_variant
    from orchestrator.report.terminal import summary_group
    from orchestrator.store.opening import open_store
    from orchestrator.sweep import default_report_folder, write_report
    from search_spaces.catalog import load_study

    console = _console()
    chosen = load_study(study)
    with open_store(_store_url(store, storage), create=False) as opened:
        key = choose_variant(opened, chosen.name, _wanted(scale, corpus, settings))
        folder = out or default_report_folder(storage.resolve(), key)
        command = paper_command(study, chosen, key, context.obj)
        result = write_report(opened, chosen, key, folder.resolve(), paper_command=command)
    console.print(summary_group(result.summary))
    console.print(f"Report: {result.path}", soft_wrap=True)


@app.command("retry")
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
    settings: Settings = None,
) -> None:
    """Run just those trials of a study again that failed or diverged."""
    plans = _plans(
        study,
        scale,
        corpus,
        data_dir=data_dir,
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
        address=address,
        gpus_per_trial=_gpus(gpus_per_trial, scale),
        cores_per_trial=cores_per_trial,
        max_concurrent=max_concurrent,
        deterministic=deterministic,
    )
    _run_all(plans, options, again=True)


@corpus_app.command("fetch")
def corpus_fetch(name: Annotated[str, typer.Argument(metavar="NAME")], data_dir: DataDir = None) -> None:
    """Download a corpus (or the benchmarks, word-similarity), going on from an earlier attempt, and verify it."""
    from orchestrator.texts import download_lines
    from trainables.corpora import fetch
    from trainables.corpora.benchmarks import fetch_benchmarks
    from trainables.corpora.known import WORD_SIMILARITY

    console = _console()
    if name == WORD_SIMILARITY:
        fetch_benchmarks(data_dir, on_progress=download_lines(console))
    else:
        fetch(name, data_dir=data_dir, on_progress=download_lines(console))
    console.print(f"{name} is complete and verified.")


@corpus_app.command("check")
def corpus_check(name: Annotated[str, typer.Argument(metavar="NAME")], data_dir: DataDir = None) -> None:
    """Verify a corpus (or word-similarity, the benchmarks): files, hashes, counts."""
    from orchestrator.listing import print_corpus

    print_corpus(name, data_dir, _console())


@store_app.command("upgrade")
def store_upgrade(store: StoreUrl = None, storage: Storage = STORAGE) -> None:
    """Bring a store made by an older version up to this one."""
    from orchestrator.store.opening import upgrade

    _console().print(upgrade(_store_url(store, storage)), soft_wrap=True)


@store_app.command("check")
def store_check(store: StoreUrl = None, storage: Storage = STORAGE) -> None:
    """Check a store for damage; exit status 1 where there is some."""
    from orchestrator.store.integrity import check

    problems = check(_store_url(store, storage))
    for problem in problems:
        _console().print(problem, soft_wrap=True)
    if not problems:
        _console().print("The store is sound.")
    raise typer.Exit(1 if problems else 0)


@app.command("rank")
def rank(
    file: Annotated[Path, typer.Argument(metavar="FILE.npy")],
    method: Annotated[str, typer.Option("--method", help="gram (fast) or qr (resolves smaller values).")] = "gram",
    eps: Annotated[str, typer.Option("--eps", help="float32 (as published) or float64.")] = "float32",
    form: Format = "table",
) -> None:
    """Measure the ranks of any saved matrix."""
    from orchestrator.listing import print_rank

    print_rank(file, method, eps, form, _console())


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 done, 1 some trials failed, 2 bad input, 130 interrupted."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    if arguments and arguments[0] not in COMMANDS and arguments[0] not in ("--help", "-h"):
        arguments.insert(0, "run")
    try:
        app(args=arguments, prog_name="sweep.py", obj=arguments[1:])
    except SystemExit as ending:
        return ending.code if isinstance(ending.code, int) else 0
    except UserError as error:
        _console(stderr=True).print(f"error: {error}", soft_wrap=True)
        return 2
    return 0
