"""The commands `forget`, `export` and `import`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import open_existing, print_out, store_url
from orchestrator.command.results import choose_variant, no_study, study_name, typed_filter
from orchestrator.command.stop import one_trial
from search_spaces.catalog import load_study
from trainables.errors import UserError


def forget(
    target: Annotated[
        str,
        typer.Argument(
            metavar="STUDY|TRIAL",
            help="A study, one variant of it (the name of its report's folder), or the first 4 or "
            "more digits of a trial's id.",
        ),
    ],
    weights: Annotated[
        bool,
        typer.Option("--weights", help="Remove only weights and checkpoints of done trials."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Remove. Without it, only print what would go.")
    ] = False,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
) -> None:
    """Remove a study or a trial.

    Trials of other studies stay. A study that is run again trains its removed trials again.
    """
    from orchestrator.storage import storage_at
    from orchestrator.store import expire_dead_owners
    from orchestrator.sweep import forget

    location, name = storage_at(storage), study_name(target)
    with open_existing(store, storage) as results_store, disk_errors("forget"):
        expire_dead_owners(results_store)
        with results_store.one_transaction():
            all_keys = [summary.key for summary in results_store.studies()]
            keys = [key for key in all_keys if name in (key.study, key.variant)]

            def trial_ids() -> Iterator[str]:
                yield from dict(results_store.studies_of(target))
                yield from location.trial_files()

            chosen = keys or one_trial(target, trial_ids())
            if not chosen:
                raise no_study(name, all_keys)
            forget(
                results_store,
                location,
                chosen,
                print_out,
                weights=weights,
                dry_run=not yes,
            )
    print_out("Removed." if yes else "Nothing was removed. Add --yes to remove.")


def export(
    context: typer.Context,
    study: options.OneStudyArgument,
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="New or empty folder.")],
    weights: Annotated[bool, typer.Option("--weights", help="Also write kept weights.")] = False,
    scale: options.AnyScale = None,
    corpus: options.AnyCorpus = None,
    settings: options.AnySettings = None,
    model: options.AnyModel = None,
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
) -> None:
    """Write a study's report, tables, configs and results to a folder.

    The folder is an appendix for a paper. `import` reads it.
    """
    from orchestrator.storage import storage_at
    from orchestrator.sweep import Typed, export_study, stored_command

    argument = stored_command(study, storage) or study
    content, variants = load_study(argument), typed_filter(scale, corpus, settings, model)
    with open_existing(store, storage) as results_store, disk_errors("export"):
        export_study(
            results_store,
            storage_at(storage),
            choose_variant(results_store, content.name, variants),
            content,
            folder,
            print_out,
            typed=Typed(study=argument, options=options.typed_options(context)),
            weights=weights,
        )


def import_folder(
    source: Annotated[
        str,
        typer.Argument(
            metavar="DIR|STORE",
            help="An exported folder, or another --storage: a folder, its results.db or a URL.",
        ),
    ],
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
) -> None:
    """Add the results of another machine.

    Existing results stay. Damaged files are left out; the exit status is then 2.
    """
    from orchestrator.storage import storage_at
    from orchestrator.sweep import import_results

    folder = Path(source).parent if Path(source).is_file() else source
    location, target = storage_at(str(folder)), storage_at(storage)
    with disk_errors("import"):
        import_results(location, target, store_url(store, storage), print_out)


@contextmanager
def disk_errors(command: str) -> Iterator[None]:
    """Raise OSError as UserError. `command` is the name of the command."""
    from orchestrator.storage import DISK_TROUBLES

    try:
        yield
    except OSError as error:
        trouble = DISK_TROUBLES.get(error.errno or 0, f"cannot be used ({error.strerror})")
        raise UserError(
            f"{command}: {error.filename} {trouble}. Then run the same command again."
        ) from error
