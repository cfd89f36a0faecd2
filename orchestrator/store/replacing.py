"""Replace a possibly damaged store with a new one."""

from __future__ import annotations

import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from orchestrator.store.address import parse, printable
from orchestrator.store.opening import open_store
from trainables.errors import UserError

SHARED_FIRST, SHARED_SIZE = 0x40000002, 510
"""First byte and length of the range in which SQLite's connections hold locks:
https://www.sqlite.org/src/file?name=src/os.h"""


@contextmanager
def replaced(url: str, report: Callable[[str], None]) -> Iterator[str]:
    """Yield the address of a new store, which replaces the store at `url` on exit.

    The old SQLite file is renamed, and `report` receives a sentence with its new name. After an
    error, the old file stays in use. A PostgreSQL database is not replaced: `url` itself is
    yielded. Raises UserError if another process has the file open, or if the PostgreSQL database
    holds studies.
    """
    parsed_url = parse(url)
    if parsed_url.drivername != "sqlite":
        with open_store(url) as store:
            if store.studies():
                raise UserError(
                    f"store rebuild: the database {printable(parsed_url)} holds studies. Make an "
                    "empty one with createdb, and name it with --store."
                )
        yield url
        return
    path = Path(parsed_url.database or "").resolve()
    # A name that `clean` recognizes if this process is killed.
    new_path = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with _exclusively(path):
            yield str(new_path)
            backup = path.with_name(f"{path.name}.before-{datetime.now(UTC):%Y%m%dT%H%M%S.%f}")
            # Move a log without its file, too: SQLite would replay it into the new store.
            for suffix in ("-wal", "-shm", ""):
                with_suffix = Path(f"{path}{suffix}")
                if with_suffix.exists():
                    with_suffix.rename(f"{backup}{suffix}")
            if backup.exists():
                report(f"The old store is now {backup}.")
            new_path.rename(path)
    except OSError as error:
        raise UserError(
            f"store rebuild: {path} cannot be replaced ({error.strerror}). Name a file in a "
            "writable folder with --store."
        ) from error
    finally:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{new_path}{suffix}").unlink(missing_ok=True)


@contextmanager
def _exclusively(path: Path) -> Iterator[None]:
    if not path.exists():
        yield
        return
    with path.open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, SHARED_SIZE, SHARED_FIRST)
        except BlockingIOError:
            raise UserError(
                f"store rebuild: another command has the results store {path} open. End it (a "
                "sweep, a page of view, a notebook), then run the same command again."
            ) from None
        yield
