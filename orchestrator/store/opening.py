"""Open, create and upgrade a store.

Alembic is imported only to create or upgrade one; opening an existing store compares its version by
a plain SELECT."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection, inspect, text

from orchestrator.store.address import parse
from orchestrator.store.database import AWAY_S, Database
from orchestrator.store.schema import REVISIONS, metadata
from orchestrator.store.store import Store
from orchestrator.store.triggers import make_triggers
from orchestrator.store.troubles import AFRESH, COPY, StoreAwayError, user_errors
from trainables.errors import PROGRAM, UserError

if TYPE_CHECKING:
    from alembic.config import Config

_UPGRADE_LOCK = (
    0x5357_4545_50  # any number no one else uses: PostgreSQL's advisory locks are named by numbers
)


def open_store(url: str, *, create: bool = True, away_s: float = AWAY_S) -> Store:
    """The store at `url`: a path, `sqlite:///PATH` or `postgresql+psycopg://USER@HOST/DATABASE`.

    A SQLite store is for the processes of one machine (its log is shared through memory); drivers
    on several machines share a PostgreSQL one. With `create`, a store that does not exist is made,
    its folder included. One that has answered and is away for a moment is waited for, for `away_s`
    seconds.

    Raises UserError for an address of another kind, a store of another version, a file or database
    that is something else, and where it cannot be reached."""
    return Store(open_database(url, create=create, away_s=away_s))


def open_database(url: str, *, create: bool, away_s: float = AWAY_S) -> Database:
    """The database behind `open_store`, at the newest schema version."""
    database = _reach(url, create=create, away_s=away_s)
    try:
        version = _version(database, may_be_empty=create)
        if version is None:
            _bring_up_to_date(database)
        elif version != REVISIONS[-1]:
            raise UserError(
                f"The results store {database.address} is at schema version {version}, this "
                f"program needs "
                f"{REVISIONS[-1]}: run `{PROGRAM} store upgrade` on it."
            )
    except BaseException:
        database.close()
        raise
    return database


def upgrade(url: str) -> str:
    """Bring an existing store to the newest schema version; returns a sentence that says what was
    done.

    Raises UserError as `open_store` does; a failed upgrade leaves the store as it was.
    """
    with closing(_reach(url, create=False)) as database:
        version = _version(database, may_be_empty=False)
        if version == REVISIONS[-1]:
            return f"The results store {database.address} is at the newest schema version, {version}, already."
        _bring_up_to_date(database)
        return f"The results store {database.address} went from schema version {version} to {REVISIONS[-1]}."


def alembic_config(connection: Connection) -> Config:
    """Alembic's settings for running the store's migrations on an open connection."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "orchestrator.store:migrations")
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = connection
    return config


def _reach(url: str, *, create: bool, away_s: float = AWAY_S) -> Database:
    parsed = parse(url)
    if parsed.drivername == "sqlite":
        path = Path(parsed.database or "")
        try:
            if not create and not path.exists():
                raise _missing(str(path))
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(
                f"The folder of the results store {path} cannot be made ({error.strerror}): "
                "name a file in a folder you may write to with --store."
            ) from error
    return Database(parsed, away_s=away_s)


def _missing(address: str) -> UserError:
    return StoreAwayError(
        f"There is no results store {address} yet",
        "run a study first, or name where it lies with --storage or --store",
    )


def _version(database: Database, *, may_be_empty: bool) -> str | None:
    """The schema version; None for a database without tables. Raises UserError for any that is not
    our own."""
    with (
        database.read() as connection,
        user_errors(database.address, COPY),
    ):  # the check opens a store too
        tables = set(inspect(connection).get_table_names())
        if not tables and may_be_empty:
            return None
        if not tables:
            raise _missing(database.address)
        if not {"alembic_version", "study_trial"} <= tables:
            raise UserError(
                f"The database {database.address} holds something else than a results store "
                f"(the table {min(tables)}): name another one with --store."
            )
        versions = (
            connection.execute(text("SELECT version_num FROM alembic_version")).scalars().all()
        )
    if len(versions) != 1:
        raise UserError(
            f"The results store {database.address} is damaged: it does not say of what version it "
            f"is; {AFRESH}."
        )
    version = str(versions[0])
    if version not in REVISIONS:
        raise UserError(
            f"The results store {database.address} was made by a newer version of this program "
            f"(schema version "
            f"{version}, this one knows up to {REVISIONS[-1]}): update the program, or name "
            f"another one with --store."
        )
    return version


def _bring_up_to_date(database: Database) -> None:
    """Make the tables in an empty database; in an older store, run the migrations that it lacks."""
    from alembic import command

    with database.write() as connection:
        # Two processes may create the same store; on SQLite the write transaction itself makes one
        # wait.
        if connection.dialect.name == "postgresql":
            connection.execute(text("SET LOCAL statement_timeout = 0"))
            connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _UPGRADE_LOCK})
        if inspect(connection).has_table("alembic_version"):
            with (
                database.reading(COPY),
                user_errors(database.address, COPY),
            ):  # the check takes no older store
                command.upgrade(alembic_config(connection), "head")
        else:
            metadata.create_all(connection)
            make_triggers(connection)
            command.stamp(alembic_config(connection), "head")
