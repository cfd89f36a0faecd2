"""The commands `store rebuild`, `store check` and `store archive`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import open_existing, print_out, store_url
from orchestrator.command.retention import disk_errors


def rebuild_store(
    store: options.StoreUrl = None, storage: options.Storage = options.STORAGE
) -> None:
    """Rebuild the store from the trial folders.

    The old store's file is kept.
    """
    from orchestrator.storage import storage_at
    from orchestrator.sweep import rebuild_store

    rebuild_store(store_url(store, storage), storage_at(storage), print_out)


def check_store(store: options.StoreUrl = None, storage: options.Storage = options.STORAGE) -> None:
    """Compare the store with the trial folders, and check it for damage.

    The exit status is 1 if anything is wrong.
    """
    from orchestrator.storage import storage_at
    from orchestrator.store import REBUILD
    from orchestrator.sweep import check_store

    sentences = check_store(store_url(store, storage), storage_at(storage))
    for sentence in sentences:
        print_out(sentence)
    print_out(
        f"If the trial folders are right, {REBUILD}."
        if sentences
        else "The store is sound, and every done trial agrees with its files."
    )
    raise typer.Exit(1 if sentences else 0)


def archive_store(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Folder to write to.")],
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
) -> None:
    """Write all trials, epochs and spectra as Parquet files."""
    from orchestrator.report import write_archive

    with open_existing(store, storage) as results_store, disk_errors("store archive"):
        folder.mkdir(parents=True, exist_ok=True)
        write_archive(results_store, folder)
    print_out(f"Archive: {folder.resolve()}")
