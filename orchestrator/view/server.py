"""Server of the pages: on loopback by default, behind a token, until interrupted."""

from __future__ import annotations

import logging
import re
import secrets
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from urllib.parse import unquote

from orchestrator.store import open_store
from trainables.errors import UserError

FIRST_PORT = 8642
THREADS = 4
REFRESH_S = 10.0
PREFIX = r"((?:/(?!(?:\.|%2[eE]){1,2}(?:/|$))[\w.~@:=+%-]+)*?(?:/(\d{4,5}))?)/?"
"""A path without the segments "." and "..". Groups: it, and the number of 4 or 5 digits at its end.
"""


def serve(
    url: str,
    storage: str,
    ready: Callable[[str], None],
    refresh: Callable[[], None],
    *,
    host: str,
    port: int | None,
    prefix: str,
) -> None:
    """Show the store at `url` and the storage until SIGINT or SIGTERM.

    `ready` receives the link once it can be opened. `refresh` updates the store every 10 s.
    `prefix` is the path of the pages behind a reverse proxy; requests arrive with or without it.
    The default `port` is the number at the end of `prefix`, else 8642, or a free one if that is
    taken. Raises UserError if the extra `view` is missing, or the storage or an argument cannot be
    used.
    """
    match = re.fullmatch(PREFIX, prefix, re.ASCII)
    if not match:
        raise UserError(
            f"--prefix: {prefix!r} is not the path of an address. Copy the path from the browser, "
            "such as /user/me/proxy/8080."
        )
    prefix, last = match.groups()
    port = port or int(last or 0)
    try:
        import waitress

        from orchestrator.view.app import make_app
    except ImportError as error:
        raise UserError(
            f"view: package {error.name} is missing. In this project's folder, type: "
            "pip install '.[view]'"
        ) from error
    from orchestrator.view.source import Source

    source = Source(url, storage)
    refresh()
    open_store(url, create=False).close()  # report a damaged store before any page
    token = secrets.token_urlsafe(24)
    pages = make_app(source, token, prefix).server

    def make_server(number: int) -> waitress.server.TcpWSGIServer:
        try:
            return waitress.create_server(
                pages,
                host=host,
                port=number,
                threads=THREADS,
                ident=None,
                url_prefix=unquote(prefix, "latin-1"),  # as WSGI decodes paths
            )
        except (OSError, ValueError) as error:
            raise UserError(
                f"--port: port {number} of {host} cannot be used ({error}). Choose another --port "
                "or --host."
            ) from error

    try:
        server = make_server(port or FIRST_PORT)
    except UserError:
        if port:
            raise
        server = make_server(0)
    # The server's warnings only report how many requests wait.
    logging.getLogger("waitress").setLevel(logging.ERROR)
    with suppress(UserError):
        # Read the study planned last, the likeliest to be opened.
        for summary in source.overview().studies[-1:]:
            source.trials(summary.key.variant)
    threading.Thread(target=server.run, daemon=True).start()
    ready(f"http://{host}:{server.effective_port}{prefix}/?token={token}")
    # Do not wait for requests in progress when a signal comes, because nothing is lost.
    with suppress(KeyboardInterrupt):
        while True:
            time.sleep(REFRESH_S)
            with suppress(UserError):
                refresh()
