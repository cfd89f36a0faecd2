"""The commands over the results store itself: `store upgrade` and `store check`."""

from __future__ import annotations

import typer

from orchestrator.command import options
from orchestrator.command.options import console, store_url


def upgrade_store(store: options.StoreUrl = None, storage: options.Storage = options.STORAGE) -> None:
    """Bring a store made by an older version up to this one."""
    from orchestrator.store import upgrade

    console().print(upgrade(store_url(store, storage)), soft_wrap=True)


def check_store(store: options.StoreUrl = None, storage: options.Storage = options.STORAGE) -> None:
    """Check a store for damage; exit status 1 where there is some."""
    from orchestrator.store import check

    problems = check(store_url(store, storage))
    for problem in problems:
        console().print(problem, soft_wrap=True)
    if not problems:
        console().print("The store is sound.")
    raise typer.Exit(1 if problems else 0)
