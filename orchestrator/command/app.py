"""The command line: options in, exit status out. What the commands do stands in `sweep` and `listing`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from orchestrator.command.options import (
    STORAGE,
    AnyCorpus,
    AnyScale,
    AnySettings,
    DataDir,
    Format,
    OneStudyArgument,
    Storage,
    StoreUrl,
    StudyArgument,
    console,
    placed,
    store_url,
)
from orchestrator.command.run import retry, run
from orchestrator.command.submit_and_stop import stop, submit
from search_spaces import catalog
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.command.listing import Wanted

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
            console(stderr=True).print("Interrupted; what was done is kept. Type the same command again to go on.")
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

app.command("run")(run)
app.command("retry")(retry)
app.command(
    "submit",
    options_metavar="STUDY [OPTIONS OF run] [OPTIONS]",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)(submit)
app.command("stop")(stop)

COMMANDS = ("run", *catalog.COMMANDS)


def _wanted(scale: str | None, corpus: str | None, settings: list[str] | None) -> Wanted:
    from orchestrator.command.listing import Wanted
    from orchestrator.plan.overrides import overrides_json, parse_overrides
    from trainables.config.built_in_corpora import one_name

    overrides = overrides_json(parse_overrides(settings)) if settings else None
    # A folder's path names its corpus here as it does in a run.
    return Wanted(scale=scale, corpus=corpus and one_name(Path(corpus).name), overrides=overrides)


@app.command("studies")
def studies(form: Format = "table") -> None:
    """List the studies, what each reproduces and how many trials it has at paper scale."""
    from orchestrator.command.listing import print_studies

    print_studies(form, console())


@app.command("status")
def status(
    study: Annotated[str | None, typer.Argument(metavar="[STUDY]", help="Only this study.")] = None,
    store: StoreUrl = None,
    storage: Storage = STORAGE,
    form: Format = "table",
) -> None:
    """Show how far each study has come."""
    from orchestrator.command.listing import print_status

    print_status(study, store_url(store, storage), form, console())


@app.command("results")
def results(
    study: OneStudyArgument,
    scale: AnyScale = None,
    corpus: AnyCorpus = None,
    settings: AnySettings = None,
    store: StoreUrl = None,
    storage: Storage = STORAGE,
    form: Annotated[str, typer.Option("--format", help="table, csv, json or parquet.")] = "table",
) -> None:
    """Print all trials of a study with their configs and metrics."""
    from orchestrator.command.listing import print_results

    print_results(study, _wanted(scale, corpus, settings), store_url(store, storage), form)


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
    """Write the report of what the store holds, trials missing or not; with all, of every built-in study it has."""
    from orchestrator.command.report import report_again

    wanted = _wanted(scale, corpus, settings)
    url = store_url(store, storage)
    report_again(study, wanted, url, *placed(storage), out, context.obj, console())


@corpus_app.command("fetch")
def corpus_fetch(name: Annotated[str, typer.Argument(metavar="NAME")], data_dir: DataDir = None) -> None:
    """Download what is absent or wrong of a corpus (or of the benchmarks, word-similarity), and verify it."""
    from orchestrator.storage.data_folder import data_folder
    from trainables.corpora import fetch
    from trainables.corpora.benchmarks import fetch_benchmarks
    from trainables.corpora.published_corpora import WORD_SIMILARITY

    shown = console()
    folder, data = data_folder(data_dir, [name])
    if name == WORD_SIMILARITY:
        fetch_benchmarks(folder)
    else:
        fetch(name, data_dir=folder)
    if data is not None:
        data.push()
    shown.print(f"{name} is complete and verified.")


@corpus_app.command("check")
def corpus_check(name: Annotated[str, typer.Argument(metavar="NAME")], data_dir: DataDir = None) -> None:
    """Verify a corpus (or word-similarity, the benchmarks): files, hashes, counts."""
    from orchestrator.command.listing import print_corpus
    from orchestrator.storage.data_folder import data_folder

    print_corpus(name, data_folder(data_dir, [name])[0], console())


@store_app.command("upgrade")
def store_upgrade(store: StoreUrl = None, storage: Storage = STORAGE) -> None:
    """Bring a store made by an older version up to this one."""
    from orchestrator.store.opening import upgrade

    console().print(upgrade(store_url(store, storage)), soft_wrap=True)


@store_app.command("check")
def store_check(store: StoreUrl = None, storage: Storage = STORAGE) -> None:
    """Check a store for damage; exit status 1 where there is some."""
    from orchestrator.store.integrity import check

    problems = check(store_url(store, storage))
    for problem in problems:
        console().print(problem, soft_wrap=True)
    if not problems:
        console().print("The store is sound.")
    raise typer.Exit(1 if problems else 0)


@app.command("rank")
def rank(
    file: Annotated[Path, typer.Argument(metavar="FILE.npy")],
    method: Annotated[str, typer.Option("--method", help="gram (fast) or qr (resolves smaller values).")] = "gram",
    eps: Annotated[str, typer.Option("--eps", help="float32 (as published) or float64.")] = "float32",
    form: Format = "table",
) -> None:
    """Measure the ranks of any saved matrix."""
    from orchestrator.command.listing import print_rank

    print_rank(file, method, eps, form, console())


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
        console(stderr=True).print(f"error: {error}", soft_wrap=True)
        return 2
    return 0
