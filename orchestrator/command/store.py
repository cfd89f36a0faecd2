"""The commands `store rebuild` and `store check`."""

from __future__ import annotations

import typer

from orchestrator.command import options
from orchestrator.command.options import print_out, store_url


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
