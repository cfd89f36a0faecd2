"""Update the report of a study while its trials run."""

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

# The pause is `EVERY_S`, or `PAUSE_FACTOR` times the last report's duration if that is longer.
EVERY_S, PAUSE_FACTOR = 180.0, 20
# Ray's workers have 15, so trials have priority.
NICENESS = 19


@contextmanager
def live_report(
    store: Store, url: str, storage: str, key: StudyKey, typed: Typed
) -> Iterator[None]:
    """Update the report in another process whenever trials have ended."""
    stop, versions = threading.Event(), store.versions(key)

    def update() -> None:
        nonlocal versions
        pause_s = EVERY_S
        while not stop.wait(pause_s):
            with suppress(UserError):
                if versions != (versions := store.versions(key)):
                    pause_s = max(EVERY_S, PAUSE_FACTOR * _spawn((url, storage, key, typed), stop))

    thread = threading.Thread(target=update, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _spawn(arguments: tuple[str, str, StudyKey, Typed], stop: threading.Event) -> float:
    # Spawn the process: a fork would copy Ray's threads.
    start_s = time.monotonic()
    process = get_context("spawn").Process(target=_write, args=arguments, daemon=True)
    process.start()
    while process.is_alive() and not stop.wait(0.1):
        pass
    process.kill()  # it may block SIGTERM, as it imports the command again
    process.join()
    return time.monotonic() - start_s


def _write(url: str, address: str, key: StudyKey, typed: Typed) -> None:
    # Suppress errors: the next report, or the final one, shows them.
    os.nice(NICENESS)
    storage = storage_at(address)
    with (
        Path(os.devnull).open("w") as null_device,
        redirect_stdout(null_device),
        redirect_stderr(null_device),
        suppress(UserError),
        open_store(url, create=False, check=False) as store,
    ):
        study, out = load_study(typed.study), report_folder(storage, key)
        page = write_report(store, study, key, out, typed=typed).path
        write_index(page, storage, Console())
