"""Tests share one Ray unless they test its start, because starting it takes seconds."""

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
"""Workers start without torch, because only some trials need it, and these import it themselves."""
_started = ExitStack()


def start_ray(note: Callable[[str], None] = lambda _: None) -> str:
    if not ray.is_initialized():
        options = RunOptions(storage=FolderStorage(Path("/nonexistent")))
        _started.enter_context(connection.connected(options, note))
    return str(ray.get_runtime_context().gcs_address)


def join_ray(address: str) -> None:
    ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)


def end_ray() -> None:
    _started.close()
    for thread in threading.enumerate():
        if thread.name.startswith(connection.THREAD):
            thread.join(120)  # at exit, the product itself does not wait for a slow Ray


@contextmanager
def without_ray() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "ray", None)
        yield
