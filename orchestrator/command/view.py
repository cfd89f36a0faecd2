"""The command `view`."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.command import options
from orchestrator.command.options import open_existing, print_out, store_url


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
    prefix: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Path of the pages behind a reverse proxy: /user/me/proxy/8080. A number at its "
            "end is the default port.",
        ),
    ] = "",
    host: Annotated[
        str, typer.Option(help="Address to listen on. By default, only this machine can connect.")
    ] = "127.0.0.1",
) -> None:
    """Show studies and trials in a browser, live while sweeps run."""
    from orchestrator.view import serve

    hint = "\nBehind the proxy, its address replaces the part before the path." if prefix else ""
    serve(
        store_url(store, storage),
        storage,
        lambda link: print_out(f"Open {link}{hint}\nCtrl-C ends it; sweeps continue."),
        lambda: open_existing(store, storage, check=False).close(),
        host=host,
        port=port,
        prefix=prefix,
    )
