"""Server of the pages: on loopback, behind a token, until interrupted."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress

from orchestrator.store import open_store
from trainables.errors import UserError

HOST = "127.0.0.1"
FIRST_PORT = 8642
THREADS = 4


def serve(url: str, storage: str, port: int | None, ready: Callable[[str], None]) -> None:
    """Show the store at `url` and the storage until SIGINT or SIGTERM.

    `ready` receives the link once it can be opened. The default `port` is 8642, or a free one if
    that is taken. Raises UserError if the extra `view` is missing, or the store, storage or `port`
    cannot be used.
    """
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
    open_store(url, create=False).close()  # report a damaged store before any page
    token = secrets.token_urlsafe(24)
    pages = make_app(source, token).server

    def make_server(number: int) -> waitress.server.TcpWSGIServer:
        return waitress.create_server(pages, host=HOST, port=number, threads=THREADS, ident=None)

    try:
        server = make_server(FIRST_PORT if port is None else port)
    except OSError as error:
        if port is not None:
            raise UserError(
                f"--port: port {port} cannot be used ({error.strerror}). Choose another port, or "
                "omit the option."
            ) from error
        server = make_server(0)
    # The server's warnings only report how many requests wait.
    logging.getLogger("waitress").setLevel(logging.ERROR)
    with suppress(UserError):
        # Read the study planned last, the likeliest to be opened.
        for summary in source.overview().studies[-1:]:
            source.trials(summary.key.variant)
    threading.Thread(target=server.run, daemon=True).start()
    ready(f"http://{HOST}:{server.effective_port}/?token={token}")
    # Do not wait for requests in progress when a signal comes, because nothing is lost.
    with suppress(KeyboardInterrupt):
        threading.Event().wait()
