"""Options shared by commands, and the printing of tables."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from rich.console import RenderableType
from typer import Argument, Context, Option

from orchestrator.watch import ShownConsole, for_reader
from orchestrator.words import json_document
from search_spaces.catalog import ALL, NAMES
from trainables.errors import UserError

if TYPE_CHECKING:
    from orchestrator.store import Store

STORAGE = "results"

# An option is named after its parameter, unless `Option` is given a name.


def no_password(store: str | None) -> str | None:
    """Return `store`. Raises UserError if it has a password, which process lists would show."""
    if store and "://" in store:
        from orchestrator.store import has_secret

        if has_secret(store):
            raise UserError(
                "--store: the address has a password. Put it into PGPASSWORD or ~/.pgpass instead."
            )
    return store


AnyScale = Annotated[
    str | None,
    Option(help="Only this scale. [default: the last planned scale with results]"),
]
AnyCorpus = Annotated[str | None, Option(help="Only this corpus.")]
DataDir = Annotated[
    str | None, Option(help="Folder of the corpora, at this path on all machines. [default: data]")
]
StoreUrl = Annotated[
    str | None,
    Option(
        callback=no_password,
        help="Results store: a file, or postgresql+psycopg://USER@HOST/DATABASE without a "
        "password. [default: results.db in --storage]",
    ),
]
Storage = Annotated[
    str,
    Option(
        help="Folder of checkpoints, results and reports, or an object store: s3://, gs:// or "
        "az://BUCKET/PREFIX."
    ),
]
Form = Literal["table", "csv", "json"]
Format = Annotated[Form, Option("--format", help="Output format.")]
TextFormat = Annotated[Literal["text", "json"], Option("--format", help="Output format.")]
EventFormat = Annotated[
    Literal["text", "jsonl"],
    Option("--format", help="Output format. jsonl prints one JSON object per event."),
]
AnySettings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE[,VALUE...]",
        help="Only the study's variant with this setting. May be repeated.",
    ),
]
ModelName = Literal["lstm", "transformer"]
AnyModel = Annotated[ModelName | None, Option(help="Only the study's variant with this model.")]


SLURM: dict[str, tuple[object, object, str]] = {
    "array": (int, 4, "Number of jobs, with one worker or one for each GPU."),
    "gpus": (int | None, None, "GPUs of each job. [default: 1 if trials need one]"),
    "partition": (str | None, None, "Partition of the jobs."),
    "time": (str | None, None, "Time limit of each job, such as 12:00:00."),
    "account": (str | None, None, "Account of the jobs."),
    "sbatch": (
        list[str] | None,
        None,
        "Another option of sbatch: --mem=8G. May be repeated.",
    ),
    "requeue": (bool, False, "Queue a job again after its time limit."),
    "script": (Path | None, None, "Write the script of the jobs to this file; submit nothing."),
}
"""Type, default and help of each option of `slurm`."""


def study_names(start: str) -> list[str]:
    """Return the built-in studies, and `all`, that start with `start`."""
    return [name for name in (*NAMES, ALL) if name.startswith(start)]


OneStudyArgument = Annotated[
    str,
    Argument(metavar="STUDY", autocompletion=study_names, help="A study's name or a Python file."),
]
StudyArgument = Annotated[
    str,
    Argument(
        metavar="STUDY", autocompletion=study_names, help="A study's name, a Python file, or all."
    ),
]


def store_url(store: str | os.PathLike[str] | None, storage: str | os.PathLike[str]) -> str:
    """Return the store's address: `store`, or by default results.db in `storage`.

    Raises UserError if `store` has a password, or `storage` is not a folder.
    """
    from orchestrator.storage import is_url

    if store is None and is_url(os.fspath(storage)):
        raise UserError(
            "--store: missing, and an object store cannot hold the results store. Name a file, or "
            "postgresql+psycopg://USER@HOST/DATABASE."
        )
    if store is None and Path(storage).is_file():
        raise UserError(
            f"--storage: {storage} is a file. Name a folder, or the file of a store with --store."
        )
    url = os.fspath(store or Path(storage).resolve() / "results.db")
    no_password(url)
    return url


def text_folder(argument: str | None) -> Path | None:
    """Return the folder of `--data-dir`, or None without one. Raises UserError for a URL."""
    if argument is not None and "://" in argument:
        raise UserError(
            f"--data-dir: {argument} is not a folder. Copy the corpora to a folder on every "
            "machine, for example with `aws s3 sync`."
        )
    return None if argument is None else Path(argument)


def open_existing(
    store: str | os.PathLike[str] | None, storage: str | os.PathLike[str], *, check: bool = True
) -> Store:
    """Open a results store, with what workers without a driver left in the storage.

    Raises the errors of `store_url` and `open_store`.
    """
    from orchestrator.storage import storage_at
    from orchestrator.store import open_store
    from orchestrator.sweep import gather, shared_studies

    url, location = store_url(store, storage), storage_at(os.fspath(storage))
    is_shared = bool(shared_studies(location))
    results_store = open_store(url, create=is_shared, check=check)
    if is_shared:
        try:
            gather(results_store, location, print_err)
        except (UserError, OSError) as error:  # such as a read-only store
            print_err(f"Results of workers are missing here: {error}")
    return results_store


def typed_options(context: Context) -> dict[str, tuple[str, ...]]:
    """Return each option that is not at its default, with its values; a switch has ()."""
    options: dict[str, tuple[str, ...]] = {}
    for param in context.command.params:
        value = context.params.get(param.name or "")
        if param.param_type_name == "option" and value not in ((), param.default):
            values = value if isinstance(value, list | tuple) else (value,)
            options[param.opts[0]] = () if value is True else tuple(map(str, values))
    return options


def console(*, stderr: bool = False) -> ShownConsole:
    """Return the console of standard output or standard error."""
    # Outside a terminal, use a fixed width, because a log file has no width.
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else 200
    # Names that users choose may contain brackets, so markup is off.
    return ShownConsole(stderr=stderr, width=width, markup=False, highlight=False)


def print_out(content: RenderableType) -> None:
    """Print on standard output."""
    console().print(content)


def print_err(text: str) -> None:
    """Print on standard error."""
    console(stderr=True).print(text)


def print_document(kind: str, **content: object) -> None:
    """Print a JSON document of this kind: see docs/json.md."""
    print(json_document(kind, content))


def print_records(
    records: Sequence[Mapping[str, Any]],
    columns: Collection[str],
    form: Form,
    kind: str,
    **content: object,
) -> None:
    """Print records in the format `form`. If `columns` is a mapping, its values are headings.

    As JSON, prints `content` in a document of this kind.
    """
    if form == "json":
        print_document(kind, **content)
    elif form == "csv":
        writer = csv.DictWriter(
            for_reader(sys.stdout), list(columns), lineterminator="\n", extrasaction="ignore"
        )
        writer.writeheader()
        writer.writerows(records)
    else:
        from orchestrator.report import Fitting, headed_table

        head = tuple(columns.values() if isinstance(columns, Mapping) else columns)
        rows = ([record[name] for name in columns] for record in records)
        print_out(Fitting(table=headed_table(head, rows)))
