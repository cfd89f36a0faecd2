"""A store's address: a path, or a URL whose password is never shown."""

from __future__ import annotations

from pathlib import Path

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from trainables.errors import UserError

FORMS = (
    "a path such as results/results.db, sqlite:///PATH, or postgresql+psycopg://USER@HOST/DATABASE"
)
SECRETS = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")


def parse(address: str) -> URL:
    """Return the store's address as a URL with an absolute path.

    Raises UserError for an unsupported address.
    """
    scheme, separator, _ = address.partition("://")
    if not separator:
        return _sqlite(address)
    try:
        address.encode()  # bytes that are not text raise ValueError
        url = make_url(address)
        if url.drivername in ("postgresql", "postgresql+psycopg"):
            url = url.set(drivername="postgresql+psycopg")
            url.get_dialect()().create_connect_args(url)  # checks the ports
    except (ArgumentError, ValueError):
        # Do not repeat the address: it may hold a password.
        raise UserError(f"--store: this {scheme} URL cannot be read. Use {FORMS}.") from None
    if url.drivername == "sqlite":
        return _sqlite(url.database or "")
    if url.drivername == "postgresql+psycopg":
        return url
    raise UserError(f"--store: {scheme} is not supported. Use {FORMS}.")


def printable(url: URL) -> str:
    """Return the store's path, or its URL with every password hidden."""
    if url.drivername == "sqlite":
        return url.database or ""
    hidden = {name: "..." for name in url.query if name.lower() in SECRETS}
    return url.update_query_dict(hidden).render_as_string(hide_password=True)


def has_secret(address: str) -> bool:
    """Return whether the store's address contains a password or key."""
    url = parse(address)
    return url.password is not None or any(name.lower() in SECRETS for name in url.query)


def _sqlite(database: str) -> URL:
    if database in ("", ":memory:"):
        raise UserError(f"--store: a database in memory does not outlive the command. Use {FORMS}.")
    return URL.create("sqlite", database=str(Path(database).expanduser().absolute()))
