"""One Ray for all tests that do not test its start, which takes longer than most of them."""

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
"""Most test trials are scripted; workers import torch if they need it."""
_started = ExitStack()


def start_ray(note: Callable[[str], None] = lambda _: None) -> str:
    """Start Ray unless it runs; return its address."""
    if not ray.is_initialized():
        options = RunOptions(storage=FolderStorage(Path("/nonexistent")))
        _started.enter_context(connection.connected(options, note))
    return str(ray.get_runtime_context().gcs_address)


def join_ray(address: str) -> None:
    ray.init(address=address, log_to_driver=False, logging_level=logging.CRITICAL)


def end_ray() -> None:
    """Stop the shared Ray, if a test needs its own or all are done."""
    _started.close()
    for thread in threading.enumerate():
        if thread.name.startswith(connection.THREAD):
            thread.join(120)  # the product does not wait for a slow Ray when its process ends


@contextmanager
def without_ray() -> Iterator[None]:
    """Make commands that use Ray fail."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(connection, "ray", None)
        yield
