"""Open, create and upgrade a store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, inspect, select, text

from orchestrator.store.address import parse
from orchestrator.store.database import AWAY_S
from orchestrator.store.schema import UPGRADES, metadata, newest_version, schema_version
from orchestrator.store.store import Store
from orchestrator.store.studies import OnRegister
from orchestrator.store.troubles import REBUILD, StoreAwayError
from trainables.errors import UserError

_UPGRADE_LOCK = (
    0x5357_4545_50  # any number no one else uses: PostgreSQL's advisory locks are named by numbers
)


def open_store(
    url: str,
    *,
    create: bool = True,
    check: bool = True,
    away_s: float = AWAY_S,
    on_wait: Callable[[], None] = lambda: None,
    on_register: OnRegister | None = None,
) -> Store:
    """Return the store at `url`: a path, `sqlite:///PATH` or
    `postgresql+psycopg://USER@HOST/DATABASE`.

    A SQLite store is for the processes of one machine (its log is shared through memory); drivers
    on several machines share a PostgreSQL one. With `create`, a store that does not exist is made,
    its folder included; an older one is upgraded. With `check`, a SQLite file is searched for
    damage, which takes 0.3 s for 10,000 trials. For up to `away_s` seconds, the store waits for a
    database that has answered before and is away, or for a SQLite file that another process keeps
    busy, and calls `on_wait` again and again meanwhile. `on_register` is called after a study was
    registered.

    Raises UserError for an address of another kind, a file or database that is something else or
    damaged, a store of another version, and if the store cannot be reached."""
    parsed = parse(url)
    if parsed.drivername == "sqlite":
        _make_folder(Path(parsed.database or ""), create=create)
    store = Store(parsed, on_register=on_register, away_s=away_s, on_wait=on_wait)
    try:
        version = _version(store)
        if version is None and not create:
            raise _missing(store.address)
        if version != newest_version():
            _bring_up_to_date(store)
        if check:
            store.check_pages()
    except BaseException:
        store.close()
        raise
    return store


def _make_folder(path: Path, *, create: bool) -> None:
    try:
        if not create and not path.exists():
            raise _missing(str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"The folder of the results store {path} cannot be made ({error.strerror}): "
            "name a file in a folder you may write to with --store."
        ) from error


def _missing(address: str) -> UserError:
    return StoreAwayError(
        f"There is no results store {address} yet",
        f"run a study first, name another store with --storage or --store, or {REBUILD}",
    )


def _version(store: Store) -> int | None:
    """The schema version; None for a database without tables. Raises UserError for any that is not
    our own."""
    with store.read() as connection:
        tables = set(inspect(connection).get_table_names())
        if not tables:
            return None
        if schema_version.name in tables:
            version = _stored_version(connection)
            if 0 < version <= newest_version():
                return version
            problem = f"was made by a newer version of this program (schema version {version})"
        else:
            problem = f"was not made by this program version (it has the table {min(tables)})"
    raise UserError(
        f"The results store {store.address} {problem}: name another one with --store, or {REBUILD}."
    )


def _stored_version(connection: Connection) -> int:
    return connection.execute(select(schema_version.c.version)).scalars().one_or_none() or 0


def _bring_up_to_date(store: Store) -> None:
    """Make the tables in an empty database; run the upgrades that an older store is missing."""
    with store.write() as connection:
        # Two processes may create the same store; on SQLite the write transaction itself makes one
        # wait.
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _UPGRADE_LOCK})
        if inspect(connection).has_table(schema_version.name):
            for upgrade in UPGRADES[_stored_version(connection) - 1 :]:
                upgrade(connection)
            connection.execute(schema_version.delete())
        else:
            metadata.create_all(connection)
        connection.execute(schema_version.insert().values(version=newest_version()))
