"""One Ray for all tests of a process that do not test how Ray starts: starting it takes longer than
most of them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
import ray

from orchestrator.cluster import connection
from orchestrator.cluster.run_options import RunOptions
from orchestrator.storage.storage import FolderStorage

vars(connection)["PRELOADS"] = "import gc; gc.set_threshold(20_000)"
"""Most trials of tests are scripted; workers import torch if a trial needs it."""
_started = ExitStack()


def start_ray(note: Callable[[str], None] = lambda _: None) -> str:
    """Start Ray, unless it is up; returns its address, at which drivers in other processes join
    it."""
    if not ray.is_initialized():
        options = RunOptions(storage=FolderStorage(Path("/nonexistent")))
        _started.enter_context(connection.connected(options, note))
    return str(ray.get_runtime_context().gcs_address)


def join_ray(address: str) -> None:
    """Have what this process runs use that Ray."""
    ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)


def end_ray() -> None:
    """Before a test that needs a Ray of its own, and when all tests are done."""
    _started.close()
    for thread in threading.enumerate():
        if thread.name.startswith(connection.THREAD):
            thread.join(
                120
            )  # the product leaves it alone with a Ray that takes long, as its process ends


@contextmanager
def without_ray() -> Iterator[None]:
    """A command that starts or uses Ray meanwhile fails."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "ray", None)
        yield
