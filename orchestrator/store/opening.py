"""Open or create a results store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from sqlalchemy import inspect, select, text

from orchestrator.store.address import parse
from orchestrator.store.database import AWAY_S
from orchestrator.store.schema import VERSION, metadata, schema_version
from orchestrator.store.store import Store
from orchestrator.store.studies import OnRegister
from orchestrator.store.troubles import REBUILD, StoreAwayError
from trainables.errors import UserError

_LOCK = 0x5357_4545_50  # arbitrary; numbers name PostgreSQL's advisory locks


def open_store(
    url: str,
    *,
    create: bool = True,
    check: bool = True,
    away_s: float = AWAY_S,
    on_wait: Callable[[], None] = lambda: None,
    on_register: OnRegister | None = None,
) -> Store:
    """Return the store at `url`: a path, `sqlite:///PATH` or a PostgreSQL URL.

    Only processes of one host can share a SQLite store, because they share its log through memory.
    `create` makes a missing store and its folder. `check` searches a SQLite file for damage (0.3 s
    for 10,000 trials). For `away_s` and `on_wait` see `Database`.
    `on_register` is called after a study is registered.

    Raises UserError if `url` has another form, or if the store is unreachable, damaged, foreign or
    from another version of this program.
    """
    parsed_url = parse(url)
    if parsed_url.drivername == "sqlite":
        _make_folder(Path(parsed_url.database or ""), create=create)
    store = Store(parsed_url, on_register=on_register, away_s=away_s, on_wait=on_wait)
    try:
        if not _has_tables(store):
            if not create:
                raise _missing_store(store.address)
            _make_tables(store)
        if check:
            store.check_pages()
    except BaseException:
        store.close()
        raise
    return store


def _make_folder(path: Path, *, create: bool) -> None:
    try:
        if not create and not path.exists():
            raise _missing_store(str(path))
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(
            f"The folder of the results store {path} cannot be created ({error.strerror}). "
            "Name a file in a writable folder with --store."
        ) from error


def _missing_store(address: str) -> UserError:
    return StoreAwayError(
        f"There is no results store {address} yet",
        f"run a study first, name another store with --storage or --store, or {REBUILD}",
    )


def _has_tables(store: Store) -> bool:
    with store.read() as connection:
        tables = set(inspect(connection).get_table_names())
        if not tables:
            return False
        problem = f"was not made by this program (it has the table {min(tables)})"
        if schema_version.name in tables:
            version = connection.execute(select(schema_version.c.version)).scalar()
            if version == VERSION:
                return True
            problem = f"was made by another version of this program (schema version {version})"
    raise UserError(
        f"The results store {store.address} {problem}: name another one with --store, or {REBUILD}."
    )


def _make_tables(store: Store) -> None:
    with store.write() as connection:
        # Two processes may create the same store. On SQLite, the write transaction makes one wait.
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        if not inspect(connection).has_table(schema_version.name):
            metadata.create_all(connection)
            connection.execute(schema_version.insert().values(version=VERSION))
