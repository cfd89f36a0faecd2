"""The command line: arguments in, exit status out."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from inspect import Parameter, Signature, signature
from typing import Annotated, Any

import typer
from typer.core import CompletionItem, TyperGroup  # type: ignore[attr-defined]
from typer.main import get_command

from orchestrator.command import options
from orchestrator.command.clean import clean
from orchestrator.command.compare import Question
from orchestrator.command.files import check_corpus, fetch_corpus
from orchestrator.command.options import print_err, print_out, study_names
from orchestrator.command.plan_listing import studies
from orchestrator.command.rank import rank
from orchestrator.command.results import report, results
from orchestrator.command.retention import export, forget, import_folder
from orchestrator.command.run import run
from orchestrator.command.show import show
from orchestrator.command.status import status
from orchestrator.command.stop import stop
from orchestrator.command.store import check_store, rebuild_store
from orchestrator.command.view import view
from search_spaces.catalog import is_file
from search_spaces.command_study import STUDY_OPTIONS
from trainables.errors import GO_ON, PROGRAM, UserError, nearest

HELP = f"""Train and compare language models in sweeps.

`{PROGRAM} STUDY` plans a study's trials, runs the missing ones and writes a report. Run the same
command again to resume.
"""

COMMAND_HELP = """Run a program once per setting and seed, without a study's file.

In COMMAND, {seed} is the seed, and {NAME} a value of --grid. The program prints JSON objects, one
per line: with "epoch", a point of the curve; without, final metrics.
"""


WORK_HELP = """Run open trials of a study next to other workers, without Ray.

Start any number of workers, on machines that share --storage. Each takes a trial that no other has,
until none is left. Gather the results at any time with `report` or `run`.
"""

COMPARE_HELP = """Train what is missing to compare two settings of a study, and judge them.

A and B are groups of the study's trials, as its plan names them without the seed. KEY=VALUE after
a name changes a setting of that side: "softmax training.learning_rate=0.01". Pairs of equal seeds
are compared. Exit status: 0 A is better, 1 B is better, 3 equivalent within --margin, 4 not
settled.
"""

SLURM_HELP = """Submit workers (see `work`) for a study as a Slurm job array."""


class _Commands(TyperGroup):
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `run` if the first word is a study. Raises UserError for a misspelt command."""
        names = [name for option in self.get_params(ctx) for name in option.opts]
        if args and args[0] not in (*self.commands, *names):
            is_study = args[0].startswith("-") or args[0] in study_names("") or is_file(args[0])
            if not is_study and not ctx.resilient_parsing:  # else a shell is completing it
                matches = nearest(args[0], self.commands, cutoff=0.6)
                if matches:
                    raise UserError(f"no such command: {args[0]!r}; did you mean {matches[0]}?")
            args = ["run", *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Return the commands and studies that start with `incomplete`."""
        studies = [CompletionItem(name) for name in study_names(incomplete)]
        return [*super().shell_complete(ctx, incomplete), *studies]

    def invoke(self, ctx: Any) -> object:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            # Typer would print "Aborted" and exit with 1.
            print_err(f"Interrupted: {GO_ON}")
            raise typer.Exit(130) from error
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")  # pydantic adds it
            raise


app = typer.Typer(
    cls=_Commands,
    help=HELP,
    no_args_is_help=True,
    add_completion=PROGRAM == "sweep",  # shells complete only installed commands
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    rich_markup_mode=None,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        from trainables.trial_folder import code_version

        number = ""
        with suppress(PackageNotFoundError):  # in the image, the code is not installed as a package
            number = f" {version('softmax-bottleneck-sweeps')}"
        print_out(f"softmax-bottleneck-sweeps{number}, code {code_version()}")
        raise typer.Exit


@app.callback()
def _program(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options that precede a command."""


corpus_app = typer.Typer(help="Download and verify corpora.", no_args_is_help=True)
store_app = typer.Typer(help="Check or rebuild the results store.", no_args_is_help=True)
app.add_typer(corpus_app, name="corpus")
app.add_typer(store_app, name="store")


def _run_without(hidden: str, *added: Parameter) -> Callable[..., None]:
    """Return `run` without the `hidden` options, and with those in `added`."""

    def command(**values: Any) -> None:
        run(**values)

    parameters = signature(run, eval_str=True).parameters.values()
    shown = [one for one in parameters if one.name not in ("others", *hidden.split())]
    vars(command)["__signature__"] = Signature([*shown, *added])
    return command


EVENTS = Parameter("form", Parameter.KEYWORD_ONLY, default="text", annotation=options.EventFormat)
app.command("run", help=run.__doc__)(_run_without("retry"))
# `retry` has no plan to print: a plan lists the trials to run, not those to retry.
app.command("retry", help="Run the failed and diverged trials of a study again.")(
    _run_without("retry dry_run form", EVENTS)
)
app.command("command", help=COMMAND_HELP)(
    _run_without(
        "scale corpus contexts benchmarks model all_trials deterministic settings",
        *(
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=None,
                annotation=Annotated[
                    list[str] | None, typer.Option(f"--{name}", metavar=metavar, help=text)
                ],
            )
            for name, (metavar, text) in STUDY_OPTIONS.items()
        ),
    )
)
DRIVER_OPTIONS = (
    "store storage address ray_dashboard max_concurrent keep_weights search budget log_to dry_run "
    "form retry"
)
SHARED_FOLDER = Parameter(
    "storage",
    Parameter.KEYWORD_ONLY,
    default=options.STORAGE,
    annotation=Annotated[str, typer.Option(help="Folder that all workers share.")],
)
app.command("work", help=WORK_HELP)(_run_without(DRIVER_OPTIONS, SHARED_FOLDER, EVENTS))
app.command("slurm", help=SLURM_HELP)(
    _run_without(
        f"{DRIVER_OPTIONS} gpus_per_trial",
        SHARED_FOLDER,
        *(
            Parameter(
                name,
                Parameter.KEYWORD_ONLY,
                default=default,
                annotation=Annotated[kind, typer.Option(f"--{name}", help=text)],
            )
            for name, (kind, default, text) in options.SLURM.items()
        ),
    )
)
app.command("compare", help=COMPARE_HELP)(
    _run_without(
        "form dry_run all_trials search budget keep_weights seeds",
        *(
            parameter.replace(kind=Parameter.KEYWORD_ONLY)
            for parameter in signature(Question, eval_str=True).parameters.values()
        ),
    )
)
for command in (stop, studies, status, show, view, results, report, rank, clean, forget, export):
    app.command()(command)
app.command("import")(import_folder)
corpus_app.command("fetch")(fetch_corpus)
corpus_app.command("check")(check_corpus)
store_app.command("check")(check_store)
store_app.command("rebuild")(rebuild_store)


@app.command()
def prove_gpu() -> None:
    """Check the results and the speed of a GPU."""
    from gpu_proof.command import main as prove

    raise typer.Exit(prove([]))  # with options, sweep.py calls it without this module


COMMANDS: Any = get_command(app)
_argument = COMMANDS.commands["command"].params[0]
_argument.metavar, _argument.help = "COMMAND", "The program and its arguments, in quotes."


def main(arguments: list[str] | None = None) -> int:
    """Run the command line and return the exit status.

    0: done. 1: some trials failed. 2: wrong input, or the run cannot go on. 130: interrupted.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # names may not fit the terminal's encoding
            stream.reconfigure(errors="backslashreplace")
    try:
        COMMANDS(args=arguments, prog_name=PROGRAM.removeprefix("python "))
    except SystemExit as ending:
        if ending.code is None or isinstance(ending.code, int):
            return ending.code or 0
        # A study's file passed this text to sys.exit.
        print_err(f"error: {ending.code}")
        return 1
    except UserError as error:
        print_err(f"error: {error}")
        return 2
    return 0
