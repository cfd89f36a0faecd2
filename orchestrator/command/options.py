"""What commands share: their options, with what `--help` says of each, and where they print."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

if TYPE_CHECKING:
    from search_spaces.study import Study

STORAGE = "results"

Scale = Annotated[str, typer.Option("--scale", help="smoke, quick, small or paper.")]
AnyScale = Annotated[
    str | None, typer.Option("--scale", help="Only this scale. [default: of those with a result, the one planned last]")
]
Corpus = Annotated[
    list[str] | None,
    typer.Option(
        "--corpus", help="pydocs, markov, markov-R (of rank R), ptb, wikitext-2 or a folder; may be repeated."
    ),
]
AnyCorpus = Annotated[str | None, typer.Option("--corpus", help="Only this corpus.")]
DataDir = Annotated[
    str | None, typer.Option("--data-dir", help="Where corpora lie: a folder or s3://BUCKET/PREFIX. [default: data]")
]
StoreUrl = Annotated[
    str | None,
    typer.Option("--store", help="sqlite:///FILE or postgresql+psycopg://... [default: results.db in --storage]"),
]
Storage = Annotated[
    str,
    typer.Option("--storage", help="Checkpoints, result files and reports: a folder or s3://BUCKET/PREFIX."),
]
Format = Annotated[str, typer.Option("--format", help="table, csv or json.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Replace a value of every trial's config, e.g. training.epochs=3; may be repeated."),
]
AnySettings = Annotated[
    list[str] | None, typer.Option("--set", help="Only the variant that was run with this; may be repeated.")
]
Address = Annotated[str | None, typer.Option("--address", help="A running Ray cluster. [default: start Ray]")]
Gpus = Annotated[
    float | None,
    typer.Option(
        "--gpus-per-trial",
        help="0, a fraction of one, or 1. [default: 1 for language models at scales small and paper, else 0]",
    ),
]
Cores = Annotated[int, typer.Option("--cores-per-trial", min=1, help="Threads of a trial that runs on a CPU.")]
MaxConcurrent = Annotated[
    int | None,
    typer.Option("--max-concurrent", min=1, help="At most so many trials at the same time."),
]
Deterministic = Annotated[
    bool,
    typer.Option("--deterministic", help="On a GPU too, the same bits for the same seed; slower."),
]
Contexts = Annotated[
    Path | None,
    typer.Option("--contexts", metavar="FILE", help="Contexts of your own for top_k@1, as a JSON list; see README."),
]
Benchmarks = Annotated[
    Path | None,
    typer.Option("--benchmarks", metavar="DIR", help="Benchmarks of your own for word_similarity@1, files *.txt."),
]
Search = Annotated[
    str | None, typer.Option("--search", help="How a tuned study picks trials: tpe, random or grid. [default: tpe]")
]
Budget = Annotated[
    int | None, typer.Option("--budget", help="Trials that a tuned study picks for each side. [default: by scale]")
]
LogTo = Annotated[
    list[str] | None,
    typer.Option(
        "--log-to",
        metavar="LOG",
        help="Log every trial to mlflow, mlflow=URI or tensorboard, too; may be repeated. See docs/watching.md.",
    ),
]
OneStudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="A study's name or a Python file.")]
StudyArgument = Annotated[str, typer.Argument(metavar="STUDY", help="A study's name, a Python file, or all.")]


COMMANDS = ("run", "retry", "studies", "status", "results", "report", "submit", "stop", "corpus", "store", "rank")
"""Any other first word is that of a study."""


def named_study(argument: str) -> Study:
    """The study of that name or in that file. Raises UserError where there is none."""
    from search_spaces.catalog import load_study

    return load_study(argument, COMMANDS)


def console(*, stderr: bool = False) -> Console:
    """Standard output or error as every command writes to it."""
    # Without a terminal, lines are as long as they are: a log file has no width.
    wide = None if (sys.stderr if stderr else sys.stdout).isatty() else 200
    # What users name things is text, brackets and all.
    return Console(stderr=stderr, width=wide, markup=False, highlight=False)


def store_url(store: str | None, storage: str) -> str:
    """The store's address: as given, or the file in the storage folder. Raises UserError where that is no folder."""
    from orchestrator.storage import is_url
    from trainables.errors import UserError

    if store is None and is_url(storage):
        raise UserError(
            "a results store cannot lie in an object store: with --storage s3://... name one with --store, "
            "postgresql+psycopg://... or the path of a file"
        )
    return store or os.fspath(Path(storage).resolve() / "results.db")
