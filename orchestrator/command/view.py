"""The command `view`."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import print_out, store_url


def view(
    store: options.StoreUrl = None,
    storage: options.Storage = options.STORAGE,
    port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65535,
            help="Port of the web server. [default: 8642, or a free one]",
        ),
    ] = None,
) -> None:
    """Show studies and trials in a browser, live while sweeps run."""
    from orchestrator.view import serve

    serve(
        store_url(store, storage),
        storage,
        port,
        lambda link: print_out(f"Open {link}\nCtrl-C ends it; sweeps continue."),
    )
