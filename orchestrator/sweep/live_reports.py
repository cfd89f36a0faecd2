"""The report of a study while its trials run."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from multiprocessing import get_context
from pathlib import Path

from rich.console import Console

from orchestrator.storage import storage_at
from orchestrator.store import Store, StudyKey, open_store
from orchestrator.sweep.commands import Typed
from orchestrator.sweep.reports import report_folder, write_index, write_report
from search_spaces.catalog import load_study
from trainables.errors import UserError

EVERY_S, REST = 180.0, 20
"""Seconds between reports, or `REST` times the duration of the last one if that is longer."""
NICENESS = 19
"""Ray's workers have 15, so trials on the same machine go first."""


@contextmanager
def live_report(
    store: Store, url: str, storage: str, key: StudyKey, typed: Typed
) -> Iterator[None]:
    """Update the report in another process when trials have ended, until the block ends.

    `url` is the address of `store`."""
    over, written = threading.Event(), store.versions(key)

    def write_again() -> None:
        nonlocal written
        pause_s = EVERY_S
        while not over.wait(pause_s):
            with suppress(UserError):
                if written != (written := store.versions(key)):
                    pause_s = max(EVERY_S, REST * _write_beside((url, storage, key, typed), over))

    thread = threading.Thread(target=write_again, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _write_beside(arguments: tuple[str, str, StudyKey, Typed], over: threading.Event) -> float:
    """Return the duration in seconds. Spawns, because a fork would copy Ray's threads."""
    start_s = time.monotonic()
    process = get_context("spawn").Process(target=_write, args=arguments, daemon=True)
    process.start()
    while process.is_alive() and not over.wait(0.1):
        pass
    process.kill()  # it may block SIGTERM, as it imports the command again
    process.join()
    return time.monotonic() - start_s


def _write(url: str, storage: str, key: StudyKey, typed: Typed) -> None:
    """Errors are suppressed: the next report, or the last one, shows them."""
    os.nice(NICENESS)
    place = storage_at(storage)
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        suppress(UserError),
        open_store(url, create=False, check=False) as store,
    ):
        study, out = load_study(typed.study), report_folder(place, key)
        page = write_report(store, study, key, out, typed=typed).path
        write_index(page, place, Console(quiet=True))
