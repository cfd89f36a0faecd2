"""The server of the pages: on loopback, behind a token, until it is interrupted."""

from __future__ import annotations

import logging
import secrets
import socket
import threading
from collections.abc import Callable
from contextlib import closing, suppress

from orchestrator.store import open_store
from trainables.errors import UserError

HOST = "127.0.0.1"
FIRST_PORT = 8642
THREADS = 4


def serve(url: str, storage: str, port: int | None, ready: Callable[[str], None]) -> None:
    """Show the store at `url` and the storage until SIGINT or SIGTERM; `ready` gets the link once
    it can be opened.

    `port` None takes 8642, or another one where that is taken. Raises UserError where the extra
    `view` is not installed, the store or the storage cannot be used, or the port is taken."""
    try:
        import waitress

        from orchestrator.view.app import make_app
    except ImportError as error:
        raise UserError(
            f"view needs packages of its own, and {error.name} is missing: install them with "
            "pip install 'softmax-bottleneck-sweeps[view]', or in the checkout with make .venv/ready"
        ) from error
    from orchestrator.view.source import Source

    source = Source(url, storage)
    open_store(url, create=False).close()  # a damaged store is reported before a page is shown
    with closing(_listening(port)) as listener:
        token = secrets.token_urlsafe(24)
        number: int = listener.getsockname()[1]
        app = make_app(source, token, number)
        server = waitress.create_server(app.server, sockets=[listener], threads=THREADS, ident=None)
        # Its own warnings are about how many requests wait.
        logging.getLogger("waitress").setLevel(logging.ERROR)
        source.warm()
        threading.Thread(target=server.run, daemon=True).start()
        ready(f"http://{HOST}:{number}/?token={token}")
        # What is being answered when a signal comes is nobody's loss: nothing is waited for.
        with suppress(KeyboardInterrupt):
            threading.Event().wait()


def _listening(port: int | None) -> socket.socket:
    """A socket of this machine alone."""
    for candidate in (FIRST_PORT, 0) if port is None else (port,):
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, candidate))
            listener.listen()
        except OSError as error:
            listener.close()
            if port is not None:
                raise UserError(
                    f"--port names a free port of this machine, and {port} cannot be had "
                    f"({error.strerror}): name "
                    "another one, or leave it out"
                ) from error
            continue
        return listener
    raise UserError(
        f"no port of {HOST} is free: end another program that listens, or name one with --port"
    )
